import { expect, test } from "vitest";
import type { LimitChange } from "../../src/index.js";
import { contractOf, type WorkType } from "../fault/programs/work.js";
import { readAudit, violations } from "../support/audit.js";
import { databaseNow, scene, until, type Scene } from "./scene.js";

const pulse: WorkType = { name: "pulse" };

interface Kind {
  readonly type: WorkType;
  readonly limit: string;
  readonly change: (n: number) => LimitChange;
}

const total: Kind = {
  type: { name: "by-total", limits: [{ name: "total", total: 10 }] },
  limit: "total",
  change: (n) => ({ total: n }),
};
const firstTotal: Kind = {
  type: {
    name: "by-first-of-two-totals",
    limits: [
      { name: "first", total: 10 },
      { name: "second", total: 1_000 },
    ],
  },
  limit: "first",
  change: (n) => ({ total: n }),
};
const perKey: Kind = {
  type: { name: "by-key", limits: [{ name: "key", perKey: 10 }] },
  limit: "key",
  change: (n) => ({ perKey: n }),
};
const concurrency: Kind = {
  type: { name: "by-concurrency", concurrency: 10 },
  limit: "by-concurrency",
  change: (n) => ({ total: n }),
};

/** A number and the time it was in force: from the return of `set` to the next call. */
interface Phase {
  readonly number: number;
  readonly from: number;
  to: number;
}

/** seen: what must have been seen before the next number is set. */
async function moveThrough(
  s: Scene,
  kind: Kind,
  numbers: readonly number[],
  seen: (number: number) => Promise<unknown> = async () => {},
): Promise<Phase[]> {
  const phases: Phase[] = [];
  for (const number of numbers) {
    const last = phases.at(-1);
    if (last !== undefined) {
      last.to = await databaseNow(s.sql);
      await s.sluice.limits.set(kind.limit, kind.change(number));
    }
    const phase = { number, from: await databaseNow(s.sql), to: Number.POSITIVE_INFINITY };
    phases.push(phase);
    await (number === 0 ? nothingComes(s, kind) : comes(s, kind, 20 + 8 * number));
    // A round trip lies between an end and the next admission: wait until the limit was full once.
    await until(
      `${number} of ${kind.type.name} in hand`,
      async () => Math.max(0, ...inHand(await admissions(s, kind), phase)) >= number,
    );
    await seen(number);
  }
  return phases;
}

const COUNT = `select
  (select count(*) from sluice.running r join sluice.task t using (id) where t.stream = s.id)::int as running,
  (select count(*) from sluice.done d join sluice.task t using (id) where t.stream = s.id)::int as done
  from sluice.stream s where s.type = $1`;

async function count(s: Scene, { type }: Kind): Promise<{ running: number; done: number }> {
  return (await s.sql.query(COUNT, [type.name])).rows[0];
}

/** Waits for so many more tasks to end. */
async function comes(s: Scene, kind: Kind, more: number): Promise<void> {
  const { done } = await count(s, kind);
  await until(`${more} more to end`, async () => (await count(s, kind)).done >= done + more);
}

/** All that ran has ended, and then the workers do other things while the limit is 0. */
async function nothingComes(s: Scene, kind: Kind): Promise<void> {
  await until("the last one to end", async () => (await count(s, kind)).running === 0);
  for (let i = 0; i < 20; i++) await (await s.sluice.enqueue(contractOf(pulse), { ms: 1 })).result();
}

interface Admission {
  readonly at: number;
  readonly over: number;
}

/** When each task was admitted and when its handler ended, by the database's clock. */
async function admissions(s: Scene, { type }: Kind): Promise<Admission[]> {
  const { rows } = await s.sql.query<Admission>(
    `with over as (select task, extract(epoch from at) * 1000000 as at from audit where kind = 'end')
    select (extract(epoch from r.started_at) * 1000000)::float8 as at, coalesce(o.at, 'infinity')::float8 as over
    from (select id, started_at from sluice.done union all select id, started_at from sluice.running) r
    join sluice.task t on t.id = r.id join sluice.stream s on s.id = t.stream
    left join over o on o.task = r.id where s.type = $1`,
    [type.name],
  );
  return rows;
}

/** The number of tasks in flight at each admission of a phase, including the admitted one. */
function inHand(all: readonly Admission[], { from, to }: Phase): number[] {
  return all
    .filter(({ at }) => at > from && at < to)
    .map(({ at }) => all.filter((other) => other.at <= at && other.over > at).length);
}

async function judge(s: Scene, kind: Kind, phases: readonly Phase[]): Promise<void> {
  const all = await admissions(s, kind);
  const seen = phases.map((phase) => ({ phase, counts: inHand(all, phase) }));
  const peaks = seen.map(({ counts }) => Math.max(0, ...counts));
  expect(peaks, kind.type.name).toEqual(phases.map(({ number }) => number));
  for (const { phase, counts } of seen) {
    expect(counts.length > 0, `${kind.type.name} at ${phase.number}`).toBe(phase.number > 0);
  }
}

/** More work than the test has time for. */
async function underLoad(kinds: readonly Kind[], tasks: number): Promise<Scene> {
  const s = await scene();
  const inputs = Array.from({ length: tasks }, (_, i) => ({ ms: 20 + (i % 20), key: "k" }));
  for (const { type } of kinds) await s.sluice.enqueueMany(contractOf(type), inputs);
  const types = [pulse, ...kinds.map(({ type }) => type)];
  await s.fleet(3, { types, worker: { pollIntervalMs: 20 } });
  return s;
}

test("a limit moved 10 -> 2 -> 10 -> 0 -> 5 under load never admits a task above the number in force", async () => {
  const kinds = [total, firstTotal, perKey, concurrency];
  const s = await underLoad(kinds, 2_000);
  const moves = await Promise.all(kinds.map((kind) => moveThrough(s, kind, [10, 2, 10, 0, 5])));
  for (const [i, kind] of kinds.entries()) await judge(s, kind, moves[i]!);
  expect((await readAudit(s.sql)).twice()).toEqual([]);
  expect(await violations(s.sql)).toEqual([]);
});

test("a limit raised and lowered under load is never exceeded", async () => {
  const s = await underLoad([total], 6_000);
  // Handlers start shortly after the claim: wait until all 25 have reported that they run.
  const all25 = (): Promise<unknown> => until("25 at once", async () => (await readAudit(s.sql)).peakOf("total") >= 25);
  const moves = moveThrough(s, total, [10, 25, 4, 12], (n) => (n === 25 ? all25() : Promise.resolve()));
  await judge(s, total, await moves);
  const audit = await readAudit(s.sql);
  expect(audit.peakOf("total")).toBe(25);
  expect(audit.twice()).toEqual([]);
});
