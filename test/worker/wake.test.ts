import { expect, test, vi } from "vitest";
import { limit, task, type } from "../../src/index.js";
import { monotonicClock, silentLogger } from "../../src/core/ports.js";
import { Keeper } from "../../src/keeper/keeper.js";
import type { AnyStatement } from "../../src/postgres/statement.js";
import { databaseNow, scene, signal, until, type Scene } from "../flow/scene.js";

const SLOW_POLL_MS = 10_000;

async function asleep(s: Scene, workers = 1): Promise<void> {
  await until("the workers to sleep", async () => {
    const { rows } = await s.sql.query("select count(*)::int as n from sluice.worker where asleep");
    return rows[0].n === workers;
  });
}

test("an idle worker that rarely polls starts each task promptly", async () => {
  const s = await scene();
  const job = task("job");
  await s.worker({ handlers: [job.handle(() => "done")], pollIntervalMs: SLOW_POLL_MS });
  const from = performance.now();
  for (let i = 0; i < 20; i++) {
    if (i % 4 === 0) await asleep(s);
    await (await s.sluice.enqueue(job)).result({ timeoutMs: SLOW_POLL_MS });
  }
  expect(performance.now() - from).toBeLessThan(SLOW_POLL_MS);
});

test("every task that arrives while a worker becomes idle is started without a poll", async () => {
  const s = await scene();
  const job = task("job", { input: type<number>() });
  await s.worker({ handlers: [job.handle((n) => n)], pollIntervalMs: SLOW_POLL_MS });
  const from = performance.now();
  // The pauses walk through the moments in which it finds nothing, says so and looks once more.
  for (let i = 0; i < 120; i++) {
    await s.sluice.enqueue(job, i);
    for (let k = 0; k < i % 12; k++) await new Promise((resolve) => setImmediate(resolve));
  }
  await until("all to end", async () => (await s.sluice.counts()).succeeded === 120, SLOW_POLL_MS);
  expect(performance.now() - from).toBeLessThan(SLOW_POLL_MS);
});

test("a ring wakes one idle worker, not all of them", async () => {
  const s = await scene();
  const job = task("job");
  const options = { handlers: [job.handle(() => {})], pollIntervalMs: SLOW_POLL_MS };
  await Promise.all([1, 2, 3].map((i) => s.worker({ ...options, name: `w${i}` })));
  await asleep(s, 3);
  const bells: string[] = [];
  const ear = await s.sql.connect();
  ear.on("notification", ({ payload = "" }) => void bells.push(payload.split(":")[0]!));
  await ear.query("listen sluice");
  await (await s.sluice.enqueue(job)).result({ timeoutMs: SLOW_POLL_MS });
  // All earlier notifications have arrived when a statement is answered.
  await ear.query("unlisten sluice");
  ear.release(true);
  expect(bells.filter((word) => word === "wake")).toEqual(["wake"]);
});

test("a delayed task wakes an idle worker when it is due", async () => {
  const s = await scene();
  const job = task("job");
  await s.worker({ handlers: [job.handle(() => {})], pollIntervalMs: 100 });
  await asleep(s);
  const before = await databaseNow(s.sql);
  const handle = await s.sluice.enqueue(job, undefined, { delayMs: 300 });
  await handle.result({ timeoutMs: 5_000 });
  expect((await handle.status())!.runAt).toBeNull();
  const { rows } = await s.sql.query<{ at: number }>(
    "select (extract(epoch from started_at) * 1000000)::float8 as at from sluice.done",
  );
  expect(rows[0]!.at - before).toBeGreaterThanOrEqual(300_000);
});

test("a raised limit and a resumed queue wake an idle worker, without a poll", async () => {
  const s = await scene();
  const tenant = limit("tenant", { perKey: 0 });
  const total = limit("total", { total: 0 });
  const keyed = task("keyed", { limits: [{ limit: tenant, key: () => "a" }] });
  const counted = task("counted", { limits: [total] });
  const own = task("own", { concurrency: 0, queue: "other" });
  const all = [keyed, counted, own];
  const handlers = all.map((one) => one.handle(() => "done"));
  await s.worker({ handlers, pollIntervalMs: SLOW_POLL_MS });
  const changes = {
    keyed: () => s.sluice.limits.set("tenant", { perKey: 1 }),
    counted: () => s.sluice.limits.set("total", { total: 1 }),
    own: () => s.sluice.limits.set("own", { total: 1 }),
  };
  for (const one of all) {
    const handle = await s.sluice.enqueue(one);
    await asleep(s);
    await changes[one.type as keyof typeof changes]();
    expect(await handle.result({ timeoutMs: SLOW_POLL_MS / 2 })).toBe("done");
  }
  await s.sluice.pause("other");
  const handle = await s.sluice.enqueue(own);
  await asleep(s);
  await s.sluice.resume("other");
  expect(await handle.result({ timeoutMs: SLOW_POLL_MS / 2 })).toBe("done");
});

test("a full group is refilled as its tasks end, without a poll", async () => {
  const s = await scene();
  const job = task("job", { input: type<number>() });
  const together = signal();
  let running = 0;
  const handler = job.handle(async (n) => {
    if (n >= 6) return;
    // The first three end together, then the next three: every slot must have found its next.
    if (++running % 3 === 0) together.resolve();
    if (running <= 3) await together.promise;
  });
  const options = { group: "g", groupLimit: 3 };
  for (let n = 0; n < 30; n++) await s.sluice.enqueue(job, n, options);
  await s.worker({ handlers: [handler], pollIntervalMs: SLOW_POLL_MS });
  await until("all to end", async () => (await s.sluice.counts()).succeeded === 30, 5_000);
});

const shared = limit("shared", { total: 1 });
const tenant = limit("tenant", { perKey: 1 });

test.each([
  ["a slot that is freed for", [shared]],
  ["a key's slot that goes on to", [{ limit: tenant, key: () => "a" }]],
])("%s a type that only other workers serve wakes them, without a poll", async (_, limits) => {
  const s = await scene();
  const [mine, yours] = [task("mine", { limits }), task("yours", { limits })];
  const [started, go] = [signal(), signal()];
  const handler = mine.handle(async () => {
    started.resolve();
    await go.promise;
  });
  await s.worker({ handlers: [handler], pollIntervalMs: SLOW_POLL_MS, name: "a" });
  const handlers = [yours.handle(() => "done")];
  await s.worker({ handlers, pollIntervalMs: SLOW_POLL_MS, name: "b" });
  await s.sluice.enqueue(mine);
  await started.promise;
  const handle = await s.sluice.enqueue(yours);
  await asleep(s, 2);
  go.resolve();
  expect(await handle.result({ timeoutMs: SLOW_POLL_MS / 2 })).toBe("done");
});

test("a malformed ring still wakes a worker, without a poll", async () => {
  const s = await scene();
  const job = task("job");
  const worker = await s.worker({
    handlers: [job.handle(() => "done")],
    pollIntervalMs: SLOW_POLL_MS,
  });
  await asleep(s);
  for (const nonsense of ["", ":x", ":-5", ":1.5", ":1e99"])
    await s.sql.query("select pg_notify('sluice', $1)", [`wake:${worker.status().id}${nonsense}`]);
  const handle = await s.sluice.enqueue(job);
  expect(await handle.result({ timeoutMs: SLOW_POLL_MS / 2 })).toBe("done");
  expect(worker.status()).toMatchObject({ inFlight: 0 });
});

test("a worker that cannot listen works by polling", async () => {
  const s = await scene({ listen: false });
  const job = task("job", { input: type<number>(), order: () => "k", concurrency: 2 });
  await s.worker({ handlers: [job.handle((n) => n)], pollIntervalMs: 20 });
  for (let i = 0; i < 10; i++) expect(await (await s.sluice.enqueue(job, i)).result({ timeoutMs: 10_000 })).toBe(i);
});

test("short-lived workers leave no listener and no timer behind", async () => {
  const s = await scene();
  const job = task("job");
  for (let i = 0; i < 5; i++) {
    const worker = await s.worker({ handlers: [job.handle(() => i)] });
    expect(await (await s.sluice.enqueue(job)).result({ timeoutMs: 10_000 })).toBe(i);
    await worker.stop();
  }
  const { rows } = await s.sql.query(
    `select count(*)::int as n from pg_stat_activity
    where datname = current_database() and application_name <> 'audit' and query ilike '%sluice.step%'`,
  );
  expect(rows).toEqual([{ n: 0 }]);
});

test("a keeper that found as many lanes as it may check continues immediately", async () => {
  vi.useFakeTimers();
  let looks = 0;
  const told: string[] = [];
  const run = ({ name }: AnyStatement): Promise<object[]> => {
    if (name === "keeper_poll") return Promise.resolve([{ leads: true, live: true, next_ms: 100 }]);
    if (name !== "keep_lanes") return Promise.resolve([]);
    if (++looks === 5) void keeper.stop();
    return looks < 5 ? Promise.resolve([{ looked: 500 }]) : Promise.reject(new Error("closed"));
  };
  const keeper = new Keeper({
    connection: { run } as never,
    log: { ...silentLogger, warn: (message) => void told.push(message) },
    clock: monotonicClock,
    pollIntervalMs: 100,
    listening: () => true,
    history: { succeededMs: 0, failedMs: 0, cancelledMs: 0 },
    onMoved: () => {},
    onUnplaced: () => {},
  });
  keeper.start();
  await vi.advanceTimersByTimeAsync(1_500);
  vi.useRealTimers();
  // A stopped keeper does not log later failures.
  expect([looks, told]).toEqual([5, []]);
});
