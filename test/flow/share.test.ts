import { setTimeout as delay } from "node:timers/promises";
import { expect, test } from "vitest";
import { contractOf, type WorkType } from "../fault/programs/work.js";
import { noteDead, readAudit, violations } from "../support/audit.js";
import { databaseNow, ended, scene, until } from "./scene.js";

const job: WorkType = { name: "job" };

test("3 workers share evenly", async () => {
  const s = await scene();
  await s.fleet(3, { types: [job] });
  const [rounds, each, everyMs] = [150, 6, 10];
  const ids: string[] = [];
  // A steady load: a few tasks at a time, at a pace that leaves permits and time to spare.
  for (let i = 0; i < rounds; i++) {
    const inputs = Array.from({ length: each }, (_, k) => ({ ms: 5 + 5 * k }));
    ids.push(...(await s.sluice.enqueueMany(contractOf(job), inputs)));
    await delay(everyMs);
  }
  await ended(s, ids.length);

  const audit = await readAudit(s.sql);
  expect(audit.lost(ids)).toEqual([]);
  const shares = ["w0", "w1", "w2"].map(
    (name) => audit.runs.filter((run) => run.process === name).length / ids.length,
  );
  expect(Math.min(...shares), shares.join(" ")).toBeGreaterThan(0.25);
  expect(Math.max(...shares), shares.join(" ")).toBeLessThan(0.42);
});

test("a killed worker's task is reclaimed and completed", async () => {
  const s = await scene();
  const leaseMs = 1_500;
  const [victim] = await s.fleet(1, { types: [job], holds: true, worker: { leaseMs } });
  const handle = await s.sluice.enqueue(contractOf(job), { ms: 5 });
  await victim!.process.line((line) => line.startsWith(`started ${handle.id}`));
  await s.fleet(1, { types: [job], worker: { leaseMs } });
  await victim!.kill();
  const killedAt = await databaseNow(s.sql);
  await noteDead(s.sql, "w0");

  expect(await handle.result({ timeoutMs: 10_000 })).toEqual({ by: "w0" });
  const again = await until("the second run", async () => (await readAudit(s.sql)).runs[1]);
  expect((again.start - killedAt) / 1_000).toBeLessThan(leaseMs + 2_000);
  expect(again.attempt).toBe(1);
  expect((await handle.status())?.attempt).toBe(1);
  expect(await violations(s.sql)).toEqual([]);
});
