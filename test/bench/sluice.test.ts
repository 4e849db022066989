import { setTimeout as sleep } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import type { Adapter, Input, Library, Shape } from "../../bench/src/adapter.js";
import { audit } from "../../bench/src/audit.js";
import { inputsOf, type Keys } from "../../bench/src/inputs.js";
import { askNumber } from "../../bench/src/library/ask.js";
import { pureSql } from "../../bench/src/library/pure-sql/index.js";
import { sluice } from "../../bench/src/library/sluice/index.js";
import { scenes } from "../../bench/src/library/sluice/scene.js";
import { nowMs } from "../../bench/src/numbers.js";
import { Watch } from "../../bench/src/process/watch.js";
import { treeCpuMs } from "../../bench/src/server/proc.js";
import { freshDatabase } from "../support/database.js";

const TASKS = 300;
const HUNDRED: Keys = { count: 100, arrangement: "contiguous" };

const variants = [sluice, pureSql].flatMap((library: Library) =>
  library.variants.map((variant) => ({ name: `${library.name}, ${variant.name}`, variant })),
);

async function ownDatabase() {
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  return database;
}

/** Fills a new database, drains it, and returns what the handlers saw. */
async function drained(adapter: Adapter, shape: Shape, keys: Keys | null = null, counted = TASKS) {
  const { url } = await ownDatabase();
  await adapter.install(url, shape);
  const producer = await adapter.produce(url, shape);
  await producer.enqueueMany(inputsOf(TASKS, keys));
  await producer.close();
  const watch = new Watch(counted);
  const seen: number[] = [];
  let done: () => void = () => {};
  const all = new Promise<void>((resolve) => (done = resolve));
  const work = (input: Input): void => {
    watch.end(watch.begin(input, nowMs()), nowMs());
    if (seen.push(input.n) === counted) done();
  };
  const consumer = await adapter.consume(url, { shape, permits: null, latency: false, work });
  await consumer.start();
  await all;
  while ((await adapter.unfinished(url, shape)) > 0) await sleep(5);
  await consumer.stop();
  if (counted === TASKS) await adapter.verify!(url, shape, TASKS);
  return { seen: seen.toSorted((a, b) => a - b), found: audit([watch.ledger()]) };
}

const everyone = Array.from({ length: TASKS }, (_, n) => n);

test.each(variants)("the bench adapter of $name runs every task of a backlog once", async ({ variant }) => {
  const { seen } = await drained(variant.adapter, {});
  expect(seen).toEqual(everyone);
});

test.each(variants)("the bench adapter of $name keeps order and limit", async ({ variant }) => {
  const { seen, found } = await drained(variant.adapter, { ordered: true, limit: 10 }, HUNDRED);
  expect(seen).toEqual(everyone);
  expect([found.inversions, found.overlaps]).toEqual([0, 0]);
});

const RUN_LENGTH = 50;
test.each(Object.keys(scenes))("the bench scene %s runs all its counted tasks", async (name) => {
  const { adapter } = sluice.variants[0]!;
  const counted = name.startsWith("types") ? TASKS - RUN_LENGTH : TASKS;
  const { seen } = await drained(adapter, { scene: { name, beside: 20 } }, null, counted);
  expect(seen).toHaveLength(counted);
  expect(new Set(seen).size).toBe(counted);
});

test("the bench fails if the number of succeeded tasks is wrong", async () => {
  const { url } = await ownDatabase();
  const { adapter } = sluice.variants[0]!;
  await adapter.install(url, {});
  await expect(adapter.verify!(url, {}, 3)).rejects.toThrow("0 of 3 tasks succeeded");
});

test("the bench adapter of sluice enqueues a task and inserts a row in one transaction", async () => {
  const { url } = await ownDatabase();
  const { adapter } = sluice.variants[0]!;
  await adapter.install(url, {});
  const producer = await adapter.produce(url, {});
  await producer.enqueueWith!({ n: 1 });
  await producer.close();
  expect(await askNumber(url, "select count(*)::int as n from bench_own")).toBe(1);
  expect(await askNumber(url, "select count(*)::int as n from sluice.task")).toBe(1);
});

test.runIf(process.platform === "linux")("the bench measures growing CPU time of a process and its children", () => {
  const before = treeCpuMs(process.pid)!;
  const until = process.cpuUsage().user + 100_000;
  while (process.cpuUsage().user < until);
  expect(treeCpuMs(process.pid)! - before).toBeGreaterThanOrEqual(50);
});
