import { expect, test } from "vitest";
import { acceptedTwice, noteDead, readAudit, violations } from "../support/audit.js";
import { startMember, type Member } from "../support/fleet.js";
import { databaseNow, ended, PROGRAM, scene, until, type Scene } from "../flow/scene.js";
import { contractOf, type Work, type WorkType } from "./programs/work.js";

const LEASE_MS = 1_500;
const quick = { leaseMs: LEASE_MS, pollIntervalMs: 50 };

const join = (s: Scene, name: string, config: object): Promise<Member> =>
  startMember(PROGRAM, name, { url: s.url, auditUrl: s.url, worker: quick, ...config });

/** Waits until a process whose handlers never end has this many tasks in flight. */
async function holds(member: Member, tasks: number): Promise<void> {
  // A line each, said when its start is in the audit.
  let said = 0;
  await member.process.line((line) => line.startsWith("started ") && ++said >= tasks);
}

/** kill -9, noted in the audit as soon as the process is known to be gone. */
async function kill(s: Scene, member: Member): Promise<number> {
  await member.kill();
  const at = await databaseNow(s.sql);
  await noteDead(s.sql, member.name);
  return at;
}

test("a zombie completes nothing and aborts its handlers, and its task completes once elsewhere", async () => {
  const s = await scene();
  const types: WorkType[] = [{ name: "job", concurrency: 2 }];
  const zombie = await join(s, "zombie", { types });
  // One ends on its signal as if nothing had happened; the other ends by itself once both have begun elsewhere too.
  const hung = await s.sluice.enqueue(contractOf(types[0]!), { ms: 1, do: "hang" });
  const late = await s.sluice.enqueue(contractOf(types[0]!), { ms: 1, do: "meet", beside: 4 });
  await zombie.process.line((line) => line.startsWith(`started ${hung.id}`));
  await zombie.process.line((line) => line.startsWith(`started ${late.id}`));
  zombie.freeze();
  const other = await join(s, "other", { types });
  await other.process.line((line) => line.startsWith(`started ${hung.id}`));
  expect(await late.result({ timeoutMs: 10_000 })).toEqual({ by: "other" });
  zombie.thaw();
  expect(await zombie.process.line((line) => line.startsWith(`aborted ${hung.id}`))).toContain("lease_lost");
  // Its task runs elsewhere undisturbed: only the worker with the claim can end it.
  await until("the zombie's handlers to end", async () => {
    const { runs } = await readAudit(s.sql);
    return runs.filter((run) => run.process === "zombie" && run.ended).length === 2;
  });
  expect((await hung.status())?.state).toBe("running");
  expect(await hung.cancel()).toBe("asked");
  await other.process.line((line) => line.startsWith(`aborted ${hung.id} task_cancelled`));
  await ended(s, 2);
  expect(await acceptedTwice(s.sql)).toEqual([]);
  expect((await s.sql.query("select distinct attempt from sluice.done")).rows).toEqual([{ attempt: 1 }]);
  // It is a worker again, under a new registration.
  await other.end();
  const next = await s.sluice.enqueue(contractOf(types[0]!), { ms: 1 });
  expect(await next.result({ timeoutMs: 10_000 })).toEqual({ by: "zombie" });
  expect(await violations(s.sql)).toEqual([]);
});

test("kill -9 with 200 tasks in hand loses nothing, breaks no order and exceeds no limit", async () => {
  const s = await scene();
  const types: WorkType[] = [
    { name: "plain" },
    { name: "ordered" },
    { name: "keyed", limits: [{ name: "tenant", perKey: 4 }] },
    { name: "limited", limits: [{ name: "crowd", total: 30 }] },
    { name: "both", concurrency: 20, limits: [{ name: "pair", perKey: 2 }] },
  ];
  const [plain, ordered, keyed, limited, both] = types.map(contractOf);
  const make = (count: number, of: (i: number) => Work): Work[] => Array.from({ length: count }, (_, i) => of(i));
  const many = await Promise.all([
    s.sluice.enqueueMany(
      plain!,
      make(70, () => ({ ms: 5 })),
    ),
    s.sluice.enqueueMany(
      ordered!,
      make(200, (i) => ({ ms: 5, order: `o${i % 50}` })),
    ),
    s.sluice.enqueueMany(
      keyed!,
      make(100, (i) => ({ ms: 20, key: `k${i % 10}` })),
    ),
    s.sluice.enqueueMany(
      limited!,
      make(100, () => ({ ms: 20 })),
    ),
    s.sluice.enqueueMany(
      both!,
      make(60, (i) => ({ ms: 20, key: `p${i % 12}`, order: `b${i % 40}` })),
    ),
  ]);
  const ids = many.flatMap((m) => m.ids());
  const victim = await join(s, "victim", { types, holds: true });
  await holds(victim, 200);
  await Promise.all([join(s, "one", { types }), join(s, "two", { types })]);
  const killedAt = await kill(s, victim);
  await ended(s, ids.length);

  const audit = await readAudit(s.sql);
  expect(audit.lost(ids)).toEqual([]);
  expect(audit.twice()).toEqual([]);
  expect(audit.disorder()).toEqual([]);
  expect(audit.peakOf("crowd")).toBe(30);
  expect(audit.peakOf("both")).toBe(20);
  expect(Math.max(...make(10, () => ({ ms: 0 })).map((_, i) => audit.peakOf(`tenant:k${i}`)))).toBe(4);
  expect(Math.max(...make(12, () => ({ ms: 0 })).map((_, i) => audit.peakOf(`pair:p${i}`)))).toBe(2);
  expect(await acceptedTwice(s.sql)).toEqual([]);
  expect(await violations(s.sql)).toEqual([]);
  // No attempt was used, and the tasks in flight ran again in time.
  expect(new Set(audit.runs.map((run) => run.attempt))).toEqual(new Set([1]));
  const held = new Set(audit.runs.filter((run) => run.process === "victim").map((run) => run.task));
  expect(held.size).toBeGreaterThanOrEqual(200);
  const again = audit.runs.filter((run) => run.process !== "victim" && held.has(run.task));
  expect((Math.min(...again.map((run) => run.start)) - killedAt) / 1_000).toBeLessThan(LEASE_MS + 2_000);
});

test("a lowered limit also holds for tasks of a dead worker", async () => {
  const s = await scene();
  const types: WorkType[] = [
    { name: "keyed", limits: [{ name: "tenant", perKey: 8 }] },
    {
      name: "first",
      limits: [
        { name: "narrow", total: 8 },
        { name: "wide", total: 100 },
      ],
    },
  ];
  const inputs = Array.from({ length: 20 }, () => ({ ms: 30, key: "k" }));
  const ids = [];
  for (const about of types) ids.push(...(await s.sluice.enqueueMany(contractOf(about), inputs)));
  const victim = await join(s, "victim", { types, holds: true });
  await holds(victim, 16);
  await s.sluice.limits.set("tenant", { perKey: 2 });
  await s.sluice.limits.set("narrow", { total: 2 });
  const setAt = await databaseNow(s.sql);
  await kill(s, victim);
  await join(s, "other", { types });
  await ended(s, ids.length);
  const audit = await readAudit(s.sql);
  const later = (limitKey: string): number =>
    audit.peak((run) => run.start > setAt && run.limitKeys.includes(limitKey));
  expect([later("tenant:k"), later("narrow")]).toEqual([2, 2]);
  expect(audit.lost(ids)).toEqual([]);
  expect(await violations(s.sql)).toEqual([]);
});

test("a poison task fails as poisoned, and the innocent tasks beside it complete", async () => {
  const s = await scene();
  const types: WorkType[] = [{ name: "poison" }, { name: "innocent" }];
  const worker = { leaseMs: 1_000, pollIntervalMs: 50 };
  const [poison, innocent] = types.map(contractOf);
  const handle = await s.sluice.enqueue(poison!, { ms: 0, do: "die", beside: 3 }, { priority: 1 });
  const ids = (
    await s.sluice.enqueueMany(
      innocent!,
      Array.from({ length: 6 }, () => ({ ms: 60 })),
    )
  ).ids();
  const members = await Promise.all(Array.from({ length: 5 }, (_, i) => join(s, `w${i}`, { types, worker })));
  for (const member of members) void member.process.exit.then(() => noteDead(s.sql, member.name));
  await expect(handle.result({ timeoutMs: 25_000 })).rejects.toMatchObject({
    code: "task_failed",
    details: { error: { code: "poisoned" } },
  });
  await ended(s, 1 + ids.length);
  const audit = await readAudit(s.sql);
  const deaths = audit.runs.filter((run) => run.task === handle.id);
  expect(deaths).toHaveLength(4);
  // The fourth time it was alone.
  const last = deaths.at(-1)!;
  expect(
    audit.runs.filter(
      (run) => run !== last && run.process === last.process && (run.end === null || run.end > last.start),
    ),
  ).toEqual([]);
  expect(audit.lost(ids)).toEqual([]);
  expect(new Set(audit.runs.map((run) => run.attempt))).toEqual(new Set([1]));
  const { rows } = await s.sql.query("select state, attempt from sluice.done where id = any ($1)", [ids]);
  expect(rows).toEqual(ids.map(() => ({ state: "succeeded", attempt: 1 })));
  expect(await violations(s.sql)).toEqual([]);
});
