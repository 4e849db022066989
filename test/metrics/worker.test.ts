import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { cancel, limit, snooze, task, type } from "../../src/index.js";
import { catalogue, LABEL_VALUES_MAX } from "../../src/metrics/catalogue.js";
import { Exposition, type Readers } from "../../src/metrics/expose.js";
import { ended, scene, signal, until } from "../flow/scene.js";
import { retriedOnce } from "./retried.js";
import { parsed, valueOf } from "./scrape.js";

const names = Object.keys(catalogue).map((name) => `sluice_${name}`);

test("a scrape has exactly the metrics of the catalogue, also before start and after stop", async () => {
  const s = await scene();
  const job = task("job", { input: type<number>(), concurrency: 3 });
  const worker = s.sluice.worker({ handlers: [job.handle(() => {})] });
  const told = async (): Promise<string[]> =>
    [...(await worker.metrics()).matchAll(/^# TYPE (\S+) /gm)].map(([, name]) => name!);
  expect(await told()).toEqual(names);
  await worker.start();
  await s.sluice.enqueue(job, 1);
  await ended(s, 1);
  await worker.stop();
  expect(await told()).toEqual(names);
  expect(await valueOf(worker, "worker_tasks_completed_total")).toBe(1);
  expect(await valueOf(worker, "worker_ready")).toBe(0);
});

test("a worker counts every outcome of an execution, and completions only if the database accepted them", async () => {
  const s = await scene();
  const once = { attempts: 1 };
  const job = task("job", { input: type<string>(), retry: once });
  const flaky = task("flaky", { input: type<string>(), retry: { attempts: 3 } });
  let [snoozed, tried] = [false, false];
  const worker = await s.worker({
    handlers: [
      job.handle(async (what, ctx) => {
        if (what === "fails") throw new Error("no");
        if (what === "cancels") throw cancel("no need");
        if (what === "transacts") await ctx.transaction(async () => {});
        if (what === "snoozes" && !snoozed) {
          snoozed = true;
          throw snooze(1);
        }
      }),
      flaky.handle(() => {
        if (tried) return;
        tried = true;
        throw new Error("again");
      }),
    ],
  });
  for (const what of ["succeeds", "transacts", "snoozes", "fails", "cancels"]) await s.sluice.enqueue(job, what);
  await s.sluice.enqueue(flaky, "fails once");
  await ended(s, 6);
  await until("all to be told", () => worker.status().permitsInUse === 0);
  const values = parsed(await worker.metrics());
  const count = (type: string, outcome: string): number | undefined =>
    values.get(`sluice_worker_tasks_ended_total{type="${type}",outcome="${outcome}"}`);
  expect(["succeeded", "failed", "cancelled", "snoozed"].map((o) => count("job", o))).toEqual([3, 1, 1, 1]);
  expect(["succeeded", "retried", "failed"].map((o) => count("flaky", o))).toEqual([1, 1, 0]);
  expect(values.get("sluice_worker_tasks_completed_total")).toBe(4);
  expect(values.get("sluice_worker_tasks_unconfirmed_total")).toBe(0);
  expect(values.get("sluice_worker_tasks_refused_total")).toBe(0);
  expect(values.get('sluice_worker_task_duration_seconds_count{type="job"}')).toBe(6);
  expect(values.get("sluice_task_processing_latency_seconds_count")).toBe(4);
  expect(values.get("sluice_worker_tasks_acquired_total")).toBe(8);
  expect(values.get("sluice_worker_claim_size_sum")).toBe(8);
  expect(values.get("sluice_worker_claims_total")).toBe(values.get("sluice_worker_claim_size_count"));
  expect(values.get('sluice_db_connections_wait_seconds_count{pool="handlers"}')).toBe(1);
  expect(values.get('sluice_db_connections_wait_seconds_count{pool="api"}')).toBeGreaterThan(5);
});

test("running tasks count as in flight, hold permits and lower the idle ratio", async () => {
  const s = await scene();
  const [begun, finish] = [signal(), signal()];
  const job = task("job", { input: type<string>() });
  let running = 0;
  const worker = await s.worker({
    maxConcurrentTasks: 4,
    handlers: [
      job.handle(async () => {
        if (++running === 2) begun.resolve();
        await finish.promise;
      }),
    ],
  });
  await s.sluice.enqueueMany(job, ["one", "two"]);
  await begun.promise;
  await until("two permits in use", () => worker.status().permitsInUse === 2);
  const values = parsed(await worker.metrics());
  expect(values.get("sluice_worker_in_flight_tasks")).toBe(2);
  expect(values.get("sluice_semaphore_permits_in_use")).toBe(2);
  expect(values.get("sluice_semaphore_permits_available")).toBe(2);
  expect(values.get("sluice_worker_payload_bytes")).toBe(10);
  expect(values.get("sluice_worker_busy_seconds_total")).toBeGreaterThan(0);
  expect(values.get("sluice_worker_idle_ratio")).toBeLessThan(1);
  expect(values.get('sluice_worker_pressure{state="normal"}')).toBe(1);
  expect(values.get("sluice_worker_ready")).toBe(1);
  expect(values.get("sluice_worker_heartbeat_age_seconds")).toBeLessThan(15);
  finish.resolve();
});

test("the queue wait of a task starts when it is due, not when it is enqueued", async () => {
  const s = await scene();
  const job = task("job", { input: type<string>(), concurrency: 9 });
  await s.sluice.enqueue(job, "later", { delayMs: 3_600_000 });
  const waiting = await s.sluice.enqueue(job, "old");
  // Both were enqueued an hour ago, and one has just become due.
  await s.sql.query("update sluice.task set created_at = created_at - interval '1 hour'");
  await s.sql.query("update sluice.task set due_at = clock_timestamp() where due_at is not null");
  await s.sql.query("update sluice.scheduled set run_at = clock_timestamp()");
  const worker = await s.worker({ handlers: [job.handle(() => {})], claimBatchSize: 1 });
  await waiting.result({ timeoutMs: 20_000 });
  await ended(s, 2);
  await until("both claims to be told", () => worker.status().acquired === 2);
  const values = parsed(await worker.metrics());
  const hist = "sluice_task_queue_wait_seconds";
  expect(values.get(`${hist}_count`)).toBe(2);
  expect(values.get(`${hist}_bucket{le="1800"}`)).toBe(1);
  expect(values.get(`${hist}_bucket{le="7200"}`)).toBe(2);
  expect(values.get('sluice_concurrency_wait_seconds_count{group="job"}')).toBe(2);
});

test("a retried task does not count in the queue wait histogram", async () => {
  const worker = await retriedOnce({});
  expect(await valueOf(worker, "task_queue_wait_seconds_count")).toBe(1);
});

test("slots and waiting tasks come from the database, acquired and rejected counts from the worker", async () => {
  const s = await scene();
  const finish = signal();
  const mail = limit("mail", { total: 2 });
  const tenant = limit("tenant", { perKey: 1 });
  const send = task("send", {
    input: type<string>(),
    limits: [mail, { limit: tenant, key: (key) => key }],
    concurrency: 50,
  });
  const worker = await s.worker({ handlers: [send.handle(() => finish.promise)] });
  await s.sluice.enqueueMany(send, ["a", "a", "b", "c", "d"]);
  await until("the limit to be full", () => worker.status().inFlight === 2);
  const group = (name: string, of: string): Promise<number | undefined> =>
    valueOf(worker, `concurrency_${name}{group="${of}"}`);
  await until("the numbers to be looked at", async () => (await group("waiting", "mail")) === 2);
  expect(await group("slots_active", "mail")).toBe(2);
  expect(await group("slots_limit", "mail")).toBe(2);
  expect(await group("slots_active", "send")).toBe(2);
  expect(await group("slots_limit", "send")).toBe(50);
  expect(await group("waiting", "send")).toBe(0);
  // The second of tenant a waits for the first; b, c and d hold their key's slot and wait for mail.
  expect(await group("slots_active", "tenant/*")).toBe(1);
  expect(await group("slots_limit", "tenant/*")).toBe(1);
  expect(await group("waiting", "tenant/*")).toBe(1);
  const total = (result: string, of: string): Promise<number | undefined> =>
    valueOf(worker, `concurrency_acquisition_total{group="${of}",result="${result}"}`);
  expect(await total("acquired", "mail")).toBe(2);
  // Waiting tasks are counted once they get a slot.
  expect(await total("rejected", "mail")).toBe(0);
  await s.sluice.limits.set("mail", { total: null });
  await until("it to be lifted", async () => (await group("slots_limit", "mail")) === Infinity);
  finish.resolve();
  await ended(s, 5);
  await until("all to be told", () => worker.status().permitsInUse === 0);
  for (const of of ["mail", "send", "tenant/*"]) expect(await total("acquired", of)).toBe(5);
  expect(await total("rejected", "mail")).toBe(3);
  expect(await total("rejected", "tenant/*")).toBe(1);
  expect(await total("rejected", "send")).toBe(0);
});

test("a user's registry has the metrics of one worker while that worker runs", async () => {
  const s = await scene();
  const registry = new Registry();
  registry.setDefaultLabels({ app: "shop" });
  const handlers = [task("job", { input: type<number>() }).handle(() => {})];
  const worker = await s.worker({ handlers, metrics: { registry } });
  expect(await registry.metrics()).toContain('sluice_worker_ready{app="shop"} 1');
  const json = (await registry.getMetricsAsJSON()).map(({ name }) => name);
  expect(json).toEqual(names);
  const second = s.sluice.worker({ handlers, metrics: { registry } });
  await expect(second.start()).rejects.toMatchObject({
    code: "invalid_option",
    details: { option: "metrics.registry" },
  });
  expect(registry.getMetricsAsArray()).toHaveLength(names.length);
  await worker.stop();
  expect(registry.getMetricsAsArray()).toHaveLength(0);
});

test("a registry that refuses a metric stays unchanged", () => {
  const registry = new Registry();
  const register = registry.registerMetric.bind(registry);
  let left = 3;
  registry.registerMetric = (metric) => {
    if (left-- === 0) throw new Error("enough");
    register(metric);
  };
  const readers = Object.fromEntries(Object.keys(catalogue).map((name) => [name, () => 0]));
  const exposition = new Exposition(readers as unknown as Readers);
  expect(() => exposition.join(registry)).toThrow("enough");
  expect(registry.getMetricsAsArray()).toHaveLength(0);
  left = names.length;
  exposition.join(registry);
  expect(registry.getMetricsAsArray()).toHaveLength(names.length);
});

test("a scrape reports at most a hundred groups, those of the worker first", async () => {
  const s = await scene();
  const limits = Array.from({ length: 60 }, (_, i) => limit(`l${i}`, { total: 9, perKey: 3 }));
  await Promise.all(limits.map((each) => s.sluice.limits.set(each, { total: 8 })));
  const own = limits.at(-1)!;
  const job = task("job", { input: type<string>(), limits: [{ limit: own, key: (key) => key }] });
  const worker = await s.worker({ handlers: [job.handle(() => {})] });
  const groups = await until("the slots to be told", async () => {
    const text = await worker.metrics();
    const told = [...text.matchAll(/^sluice_concurrency_slots_limit\{group="(.+)"\}/gm)];
    return told.length > 0 && told.map(([, group]) => group!);
  });
  expect(groups).toHaveLength(LABEL_VALUES_MAX);
  expect(groups).toEqual(expect.arrayContaining(["l59", "l59/*"]));
});

test("status() says whether the worker is ready and why not, as /ready does", async () => {
  const s = await scene();
  const handlers = [task("job", { input: type<number>() }).handle(() => {})];
  const worker = s.sluice.worker({ handlers, metrics: { port: 0, token: "a-token-of-24-characters" } });
  expect(worker.status()).toMatchObject({ ready: false, reasons: ["starting"] });
  await worker.start();
  const { ready, reasons } = worker.status();
  expect({ ready, reasons }).toEqual({ ready: true, reasons: [] });
  expect(await (await fetch(`${worker.metricsUrl}/ready`)).json()).toEqual({ ready, reasons });
  await worker.stop();
  expect(worker.status()).toMatchObject({ ready: false, reasons: ["stopped"] });
});

test("a worker with metrics off counts nothing and still serves /ready", async () => {
  const s = await scene();
  const handlers = [task("job", { input: type<number>() }).handle(() => {})];
  const worker = await s.worker({ handlers, metrics: { enabled: false, port: 0 } });
  expect(await worker.metrics()).toBe("");
  const page = await fetch(`${worker.metricsUrl}/metrics`);
  expect([page.status, await page.json()]).toEqual([
    404,
    { error: "no metrics are collected: metrics.enabled is false" },
  ]);
  expect(await (await fetch(`${worker.metricsUrl}/ready`)).json()).toEqual({
    ready: true,
    reasons: [],
  });
});

test("an unresponsive database delays a scrape by at most a second and omits only its own numbers", async () => {
  const s = await scene({ apiConnections: 2 });
  const job = task("job", { input: type<number>(), concurrency: 2 });
  const worker = await s.worker({ handlers: [job.handle(() => {})] });
  const locker = await s.sql.connect();
  await locker.query("begin; lock table sluice.limits in access exclusive mode");
  const text = await worker.metrics();
  expect(text).toMatch(/^sluice_semaphore_permits_available \d+$/m);
  expect(text).not.toContain("sluice_concurrency_slots_active{");
  await locker.query("rollback");
  locker.release();
  await until("the limit to be told", async () =>
    (await worker.metrics()).includes('sluice_concurrency_slots_active{group="job"} 0'),
  );
});
