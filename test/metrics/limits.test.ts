// Exact counts at limits: the tasks that passed, and those that had to wait for a slot.
import { describe, expect, test } from "vitest";
import { limit, task, type, type Worker, type WorkerOptions } from "../../src/index.js";
import { ended, scene, signal, until, type Scene } from "../flow/scene.js";
import { retriedOnce } from "./retried.js";
import { parsed } from "./scrape.js";

type Counts = Record<string, [acquired: number, rejected: number]>;

/** The counts of each group, summed over all workers. */
async function counted(...workers: Worker[]): Promise<Counts> {
  const counts: Counts = {};
  for (const worker of workers)
    for (const [line, value] of parsed(await worker.metrics())) {
      const found = /^sluice_concurrency_acquisition_total\{group="(.+)",result="(.+)"\}$/.exec(line);
      if (found === null) continue;
      const count = (counts[found[1]!] ??= [0, 0]);
      count[found[2] === "acquired" ? 0 : 1] += value;
    }
  return counts;
}

async function waits(worker: Worker, group: string, le?: string): Promise<number | undefined> {
  const values = parsed(await worker.metrics());
  const name = "sluice_concurrency_wait_seconds";
  if (le === undefined) return values.get(`${name}_count{group="${group}"}`);
  return values.get(`${name}_bucket{group="${group}",le="${le}"}`);
}

/** Lets a worker claim as many tasks as it can, and then lets all of them end. */
async function drained(
  s: Scene,
  { tasks, atOnce }: { readonly tasks: number; readonly atOnce: number },
  handler: (work: () => Promise<void>) => WorkerOptions["handlers"][number],
): Promise<Worker> {
  const finish = signal();
  const worker = await s.worker({ handlers: [handler(() => finish.promise)] });
  await until(`${atOnce} to run`, () => worker.status().inFlight === atOnce);
  finish.resolve();
  await ended(s, tasks);
  await until("all to be told", () => worker.status().permitsInUse === 0);
  return worker;
}

const twelve = Array.from({ length: 12 }, (_, i) => String(i));

describe("all tasks beyond the free slots count as having waited", () => {
  test("at the limit of a task type", async () => {
    const s = await scene();
    const job = task("job", { input: type<string>(), concurrency: 3 });
    await s.sluice.enqueueMany(job, twelve);
    await s.sql.query("update sluice.task set created_at = created_at - interval '1 hour'");
    const worker = await drained(s, { tasks: 12, atOnce: 3 }, (work) => job.handle(work));
    expect(await counted(worker)).toEqual({ job: [12, 9] });
    expect(await waits(worker, "job")).toBe(12);
    expect(await waits(worker, "job", "1800")).toBe(0);
    expect(await waits(worker, "job", "7200")).toBe(12);
  });

  test("at a named limit that two types share", async () => {
    const s = await scene();
    const mail = limit("mail", { total: 4 });
    const [one, two] = ["one", "two"].map((name) => task(name, { input: type<string>(), limits: [mail] }));
    await s.sluice.enqueueMany(one!, twelve);
    await s.sluice.enqueueMany(two!, twelve);
    const finish = signal();
    const handlers = [one!, two!].map((each) => each.handle(() => finish.promise));
    const worker = await s.worker({ handlers });
    await until("4 to run", () => worker.status().inFlight === 4);
    finish.resolve();
    await ended(s, 24);
    await until("all to be told", () => worker.status().permitsInUse === 0);
    expect(await counted(worker)).toEqual({ mail: [24, 20] });
  });

  test("at the smaller of two totals, beside a limit of the type", async () => {
    const s = await scene();
    const [mail, api] = [limit("mail", { total: 2 }), limit("api", { total: 5 })];
    const job = task("job", { input: type<string>(), limits: [mail, api], concurrency: 7 });
    await s.sluice.enqueueMany(job, twelve);
    const worker = await drained(s, { tasks: 12, atOnce: 2 }, (work) => job.handle(work));
    expect(await counted(worker)).toEqual({ job: [12, 0], mail: [12, 10], api: [12, 0] });
  });

  test("at a limit per key, summed over all keys", async () => {
    const s = await scene();
    const tenant = limit("tenant", { perKey: 2 });
    const job = task("job", { input: type<string>(), limits: [{ limit: tenant, key: (k) => k }] });
    await s.sluice.enqueueMany(job, "aaaaabbbbbc".split(""));
    const worker = await drained(s, { tasks: 11, atOnce: 5 }, (work) => job.handle(work));
    expect(await counted(worker)).toEqual({ "tenant/*": [11, 6] });
    expect(await waits(worker, "tenant/*")).toBe(11);
  });

  test("at two limits per key, counted separately", async () => {
    const s = await scene();
    const [tenant, region] = [limit("tenant", { perKey: 1 }), limit("region", { perKey: 9 })];
    const limits = [
      { limit: tenant, key: (k: string) => k },
      { limit: region, key: () => "eu" },
    ];
    const job = task("job", { input: type<string>(), limits, order: { key: (k) => `o-${k}` } });
    await s.sluice.enqueueMany(job, "abc".split(""));
    const free = task("free", { input: type<string>(), limits });
    await s.sluice.enqueueMany(free, "defdef".split(""));
    const finish = signal();
    const handlers = [job, free].map((each) => each.handle(() => finish.promise));
    const worker = await s.worker({ handlers });
    await until("6 to run", () => worker.status().inFlight === 6);
    finish.resolve();
    await ended(s, 9);
    await until("all to be told", () => worker.status().permitsInUse === 0);
    expect(await counted(worker)).toEqual({ "tenant/*": [9, 3], "region/*": [9, 0] });
  });

  test("at a limit with a total and a number per key, counted separately", async () => {
    const s = await scene();
    const both = limit("both", { total: 3, perKey: 1 });
    const job = task("job", { input: type<string>(), limits: [{ limit: both, key: (k) => k }] });
    await s.sluice.enqueueMany(job, "aabcde".split(""));
    const worker = await drained(s, { tasks: 6, atOnce: 3 }, (work) => job.handle(work));
    expect(await counted(worker)).toEqual({ both: [6, 3], "both/*": [6, 1] });
  });

  test("at limits chosen by a function, and at a group given at enqueue", async () => {
    const s = await scene();
    const [small, large] = [limit("small", { total: 1 }), limit("large", { total: 8 })];
    const job = task("job", {
      input: type<string>(),
      limits: (input) => [input < "2" ? small : large],
    });
    for (const input of ["a", "b", "c"]) await s.sluice.enqueue(job, input, { group: "vip", groupLimit: 2 });
    // 0, 1, 10 and 11 are small.
    await s.sluice.enqueueMany(job, twelve);
    const worker = await drained(s, { tasks: 15, atOnce: 9 }, (work) => job.handle(work));
    expect(await counted(worker)).toEqual({ small: [4, 3], large: [11, 3], vip: [3, 1] });
  });

  test("across several workers, counted by the worker that claimed the task", async () => {
    const s = await scene();
    const job = task("job", { input: type<string>(), concurrency: 4 });
    await s.sluice.enqueueMany(job, twelve);
    const finish = signal();
    const handlers = [job.handle(() => finish.promise)];
    const workers = [
      await s.worker({ handlers, maxConcurrentTasks: 2 }),
      await s.worker({ handlers, maxConcurrentTasks: 2 }),
    ];
    const sum = (): number => workers.reduce((n, worker) => n + worker.status().inFlight, 0);
    await until("4 to run", () => sum() === 4);
    finish.resolve();
    await ended(s, 12);
    await until("all to be told", () => workers.every((w) => w.status().permitsInUse === 0));
    expect(await counted(...workers)).toEqual({ job: [12, 8] });
  });
});

test("a task that finds a free slot is not counted as rejected, however often the limit was full before", async () => {
  const s = await scene();
  const one = limit("one", { total: 1, perKey: 1 });
  const job = task("job", {
    input: type<string>(),
    limits: [{ limit: one, key: () => "k" }],
    concurrency: 1,
  });
  const worker = await s.worker({ handlers: [job.handle(() => {})] });
  for (const input of twelve) {
    const handle = await s.sluice.enqueue(job, input);
    await handle.result({ timeoutMs: 20_000 });
  }
  await until("all to be told", () => worker.status().acquired === 12);
  expect(await counted(worker)).toEqual({ job: [12, 0], one: [12, 0], "one/*": [12, 0] });
});

test("tasks enqueued before a limit was raised count as having waited, later ones do not", async () => {
  const s = await scene();
  const finish = signal();
  const mail = limit("mail", { total: 1 });
  const job = task("job", { input: type<string>(), limits: [mail] });
  const worker = await s.worker({ handlers: [job.handle(() => finish.promise)] });
  await s.sluice.enqueueMany(job, ["a", "b", "c"]);
  await until("one to run", () => worker.status().inFlight === 1);
  await s.sluice.limits.set("mail", { total: 9 });
  await until("all to run", () => worker.status().inFlight === 3);
  await s.sluice.enqueueMany(job, ["d", "e"]);
  await until("those too", () => worker.status().inFlight === 5);
  expect(await counted(worker)).toEqual({ mail: [5, 2] });
  finish.resolve();
});

test("a task enqueued after slots became idle does not count as having waited, an earlier one does", async () => {
  const s = await scene();
  const [finish, mail] = [signal(), limit("mail", { total: 2 })];
  const [done, waiting] = ["done", "waiting"].map((name) => task(name, { input: type<number>(), limits: [mail] }));
  const first = await s.worker({ handlers: [done!.handle(() => finish.promise)] });
  await s.sluice.enqueueMany(done!, [1, 2]);
  await until("the limit to be full", () => first.status().inFlight === 2);
  // No worker serves this type yet.
  await s.sluice.enqueue(waiting!, 1);
  finish.resolve();
  await ended(s, 2);
  await s.sluice.enqueue(waiting!, 2);
  const second = await s.worker({ handlers: [waiting!.handle(() => {})] });
  await ended(s, 4);
  await until("all to be told", () => second.status().acquired === 2);
  expect(await counted(first)).toEqual({ mail: [2, 0] });
  expect(await counted(second)).toEqual({ mail: [2, 1] });
});

test("a retry counts at its limits again, but not in the wait histogram", async () => {
  const worker = await retriedOnce({ concurrency: 5 });
  expect(await counted(worker)).toEqual({ job: [2, 0] });
  expect(await waits(worker, "job")).toBe(1);
});
