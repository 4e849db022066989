import { expect, test } from "vitest";
import { contractOf, type WorkType } from "../fault/programs/work.js";
import { acceptedTwice, readAudit, violations, type Audit } from "../support/audit.js";
import { ended, scene } from "./scene.js";

const step: WorkType = { name: "step" };
// Fewer permits than keys, so that no process can run all tasks of a key.
const narrow = { types: [step], worker: { maxConcurrentTasks: 4, pollIntervalMs: 20 } };

/** The largest number of processes that ran tasks of one key. */
function hands(audit: Audit): number {
  const byKey = new Map<string | null, Set<string>>();
  for (const { orderKey, process } of audit.runs) byKey.set(orderKey, (byKey.get(orderKey) ?? new Set()).add(process));
  return Math.max(...[...byKey.values()].map((processes) => processes.size));
}

test("10 tasks of one order key run in the order of their enqueues", async () => {
  const s = await scene();
  await s.fleet(3, narrow);
  const oneByOne = async (order: string): Promise<string[]> => {
    const ids: string[] = [];
    for (let i = 0; i < 10; i++) {
      ids.push((await s.sluice.enqueue(contractOf(step), { ms: 1 + (i % 5), order })).id);
    }
    return ids;
  };
  const allAtOnce = async (order: string): Promise<string[]> => {
    const inputs = Array.from({ length: 10 }, (_, i) => ({ ms: 1 + (i % 5), order }));
    return (await s.sluice.enqueueMany(contractOf(step), inputs)).ids();
  };
  const names = Array.from({ length: 15 }, (_, i) => i);
  const ids = await Promise.all([
    ...names.map((i) => oneByOne(`one by one ${i}`)),
    ...names.map((i) => allAtOnce(`all at once ${i}`)),
  ]);
  await ended(s, 300);

  const audit = await readAudit(s.sql);
  expect(audit.lost(ids.flat())).toEqual([]);
  expect(audit.twice()).toEqual([]);
  expect(audit.disorder()).toEqual([]);
  expect(hands(audit)).toBeGreaterThan(1);
  expect(await violations(s.sql)).toEqual([]);
});

test("tasks of a bulk insert with mixed order keys run in order within each key", { timeout: 120_000 }, async () => {
  const s = await scene();
  await s.fleet(3, narrow);
  const inputs = Array.from({ length: 2_500 }, (_, i) => ({ ms: i % 3, order: `key ${i % 37}` }));
  const ids = (await s.sluice.enqueueMany(contractOf(step), inputs)).ids();
  await ended(s, inputs.length, 100_000);

  const audit = await readAudit(s.sql);
  expect(audit.lost(ids)).toEqual([]);
  expect(audit.twice()).toEqual([]);
  expect(audit.disorder()).toEqual([]);
  expect(hands(audit)).toBe(3);
  expect(await violations(s.sql)).toEqual([]);
});

test("100 order keys run concurrently", async () => {
  const s = await scene();
  const [keys, tasks] = [100, 10];
  const inputs = Array.from({ length: keys * tasks }, (_, i) => ({
    ms: 40,
    order: `key ${i % keys}`,
    do: "meet" as const,
    beside: keys,
  }));
  const ids = (await s.sluice.enqueueMany(contractOf(step), inputs)).ids();
  await s.fleet(3, { types: [step] });
  await ended(s, ids.length);

  const audit = await readAudit(s.sql);
  expect(audit.lost(ids)).toEqual([]);
  expect(audit.disorder()).toEqual([]);
  // Each key runs one task at a time, so 100 at once means that all keys ran concurrently.
  expect(audit.peak(() => true)).toBe(keys);
  expect(await acceptedTwice(s.sql)).toEqual([]);
  expect(await violations(s.sql)).toEqual([]);
});
