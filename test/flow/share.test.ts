import { expect, test } from "vitest";
import { contractOf, type WorkType } from "../fault/programs/work.js";
import { noteDead, readAudit, violations } from "../support/audit.js";
import { startMember } from "../support/fleet.js";
import { databaseNow, ended, PROGRAM, scene } from "./scene.js";

const job: WorkType = { name: "job" };

test("3 workers share a backlog evenly", { timeout: 60_000 }, async () => {
  const s = await scene();
  await s.fleet(3, { types: [job] });
  const ids: string[] = [];
  // A steady load of one task after the other, which leaves every worker free permits and idle time.
  for (let i = 0; i < 1_800; i++) {
    ids.push((await s.sluice.enqueue(contractOf(job), { ms: 5 + 5 * (i % 6) })).id);
  }
  await ended(s, ids.length);

  const audit = await readAudit(s.sql);
  expect(audit.lost(ids)).toEqual([]);
  const shares = ["w0", "w1", "w2"].map((name) => audit.runs.filter((run) => run.process === name).length / ids.length);
  expect(Math.min(...shares), shares.join(" ")).toBeGreaterThan(0.25);
  expect(Math.max(...shares), shares.join(" ")).toBeLessThan(0.42);
});

test("a killed worker's task is recovered and completed", async () => {
  const s = await scene();
  const leaseMs = 1_500;
  const config = { url: s.url, auditUrl: s.url, types: [job], worker: { leaseMs } };
  const victim = await startMember(PROGRAM, "victim", { ...config, holds: true });
  const handle = await s.sluice.enqueue(contractOf(job), { ms: 5 });
  await victim.process.line((line) => line.startsWith(`started ${handle.id}`));
  await startMember(PROGRAM, "other", config);
  await victim.kill();
  const killedAt = await databaseNow(s.sql);
  await noteDead(s.sql, "victim");

  expect(await handle.result({ timeoutMs: 10_000 })).toEqual({ by: "other" });
  const { runs } = await readAudit(s.sql);
  expect(runs.map(({ process, attempt }) => [process, attempt])).toEqual([
    ["victim", 1],
    ["other", 1],
  ]);
  expect((runs[1]!.start - killedAt) / 1_000).toBeLessThan(leaseMs + 2_000);
  expect((await handle.status())?.attempt).toBe(1);
  expect(await violations(s.sql)).toEqual([]);
});
