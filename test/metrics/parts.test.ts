import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { task, type } from "../../src/index.js";
import { unready } from "../../src/metrics/health.js";
import type { SlotsReading } from "../../src/postgres/slots.js";
import { onWait } from "../../src/postgres/waits.js";
import { LimitSlots } from "../../src/worker/metrics/limit-slots.js";
import { signal, until } from "../flow/scene.js";
import { openRealm } from "../roles/realm.js";
import { freshDatabase } from "../support/database.js";
import { spawnTs } from "../support/process.js";
import { valueOf } from "./scrape.js";

test.each([
  ["new", 0, false, ["starting"]],
  ["running", 0, false, []],
  ["running", 10_000, false, []],
  ["running", 10_501, false, ["the last heartbeat is 10501 ms old"]],
  ["running", null, false, ["the worker has no lease"]],
  ["running", 0, true, ["the worker runs a suspect task alone"]],
  ["stopping", 0, false, ["stopping"]],
  ["stopped", null, false, ["stopped"]],
] as const)(
  "a worker that is %s with a heartbeat %s ms old (suspect task: %s) is unready for %j",
  (state, heartbeatAgeMs, suspecting, why) => {
    expect(unready({ state, heartbeatAgeMs, leaseMs: 15_000, suspecting })).toEqual(why);
  },
);

test("a worker with an old heartbeat is unready even if its lease is long", () => {
  const about = { state: "running", suspecting: false, leaseMs: 3_600_000 } as const;
  expect(unready({ ...about, heartbeatAgeMs: 11_000 })).toEqual([]);
  expect(unready({ ...about, heartbeatAgeMs: 11_001 })).toHaveLength(1);
});

test("concurrent scrapes share one query for slots, at most once a second", async () => {
  let [asked, now] = [0, 0];
  const replies = [signal<SlotsReading>(), signal<SlotsReading>()];
  const limitSlots = new LimitSlots({ clock: { now: () => now }, read: () => replies[asked++]!.promise });
  const group = { group: "mail", slots: 2, used: 2 };
  const both = Promise.all([limitSlots.read(), limitSlots.read()]);
  replies[0]!.resolve({ slots: [{ ...group, waiting: 3 }], omitted: 0 });
  expect((await both).map(({ slots }) => slots[0]?.waiting)).toEqual([3, 3]);
  now = 999;
  await limitSlots.read();
  expect(asked).toBe(1);
  now = 1_500;
  replies[1]!.resolve({ slots: [{ ...group, waiting: 0 }], omitted: 0 });
  expect((await limitSlots.read()).slots[0]?.waiting).toBe(0);
  expect(asked).toBe(2);
});

test("the wait for a pool connection is timed for every kind of call", async () => {
  const database = await freshDatabase();
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  pool.on("error", () => {});
  onTestFinished(async () => {
    await pool.end();
    await database.drop();
  });
  const waits: number[] = [];
  const stop = onWait(pool, (ms) => waits.push(ms));
  const holder = await pool.connect();
  const queried = pool.query("select 1 as one");
  await until("one to wait", () => pool.waitingCount === 1);
  const waitedMs = performance.now();
  await new Promise((resolve) => setTimeout(resolve, 20));
  const heldMs = performance.now() - waitedMs;
  holder.release();
  expect((await queried).rows).toEqual([{ one: 1 }]);
  expect(waits).toHaveLength(2);
  expect(waits[1]).toBeGreaterThanOrEqual(heldMs);
  stop();
  await pool.query("select 1");
  expect(waits).toHaveLength(2);
});

test("a worker with only the worker role reports the slots of limits", async () => {
  const realm = await openRealm("jobs");
  onTestFinished(() => realm.close());
  const sluice = await realm.connect("worker");
  const job = task("job", { input: type<number>(), concurrency: 7 });
  const worker = sluice.worker({ handlers: [job.handle(() => {})] });
  await worker.start();
  await until(
    "the limit to be told",
    async () => (await valueOf(worker, 'concurrency_slots_limit{group="job"}')) === 7,
  );
  await worker.stop();
});

test("the metrics server and its connections do not keep a process alive", async () => {
  const alone = spawnTs("test/metrics/programs/alone.ts");
  await alone.line((line) => line === "answered");
  expect(await alone.exit).toBe(0);
});
