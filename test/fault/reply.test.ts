import { expect, onTestFinished, test, vi } from "vitest";
import { Sluice, fixed, task, type, workflow, type Worker, type WorkerOptions } from "../../src/index.js";
import { violations } from "../support/audit.js";
import { scene, signal, until, type Scene } from "../flow/scene.js";
import { Proxy, type Exchange } from "./proxy.js";

// A busy machine stands still for a second now and then: what shall run once must not lose its lease by that.
const LEASE_MS = 5_000;

/** A scene whose worker reaches the database through a proxy, while the test itself does not. */
async function proxied(): Promise<Scene & { proxy: Proxy; behind: Sluice }> {
  const s = await scene();
  // So that the id of a task is not also the id of a stream.
  await s.sql.query("select setval('sluice.task_id', 1000)");
  const proxy = await Proxy.start(s.url);
  const behind = await Sluice.connect({ url: proxy.url, migrate: false, listen: false });
  onTestFinished(() => behind.close());
  return { ...s, proxy, behind };
}

type Proxied = Awaited<ReturnType<typeof proxied>>;

async function work(s: Proxied, handlers: WorkerOptions["handlers"], more: object = {}): Promise<Worker> {
  const worker = s.behind.worker({ handlers, leaseMs: LEASE_MS, pollIntervalMs: 50, ...more });
  onTestFinished(() => worker.stop({ graceMs: 0 }));
  await worker.start();
  return worker;
}

const of =
  (statement: string, rows = 0) =>
  (exchange: Exchange): boolean =>
    exchange.statement === `sluice.${statement}` && exchange.rows >= rows;

/** Everything has come back: permits to the worker, slots to their limits, sessions to one. */
async function sound(s: Proxied, worker: Worker): Promise<void> {
  await until("the worker to be empty", () => worker.status().permitsInUse === 0);
  await until("the doubtful session to end", async () => {
    const { rows } = await s.sql.query("select count(*)::int as n from sluice.worker");
    return rows[0].n === 1;
  });
  expect((await s.sql.query("select * from sluice.running")).rows).toEqual([]);
  expect(await violations(s.sql)).toEqual([]);
}

test("an enqueue whose reply is lost is found again under its idempotency key", async () => {
  const s = await proxied();
  const note = task("note", { input: type<{ n: number }>() });
  const lost = s.proxy.loseReply(of("enqueue_many"));
  const first = s.behind.enqueue(note, { n: 1 }, { idempotencyKey: "once" });
  await expect(first).rejects.toMatchObject({ code: "database_unavailable" });
  await lost;
  const again = await s.behind.enqueue(note, { n: 1 }, { idempotencyKey: "once" });
  expect(again.existed).toBe(true);
  const { rows } = await s.sql.query("select id::text from sluice.task");
  expect(rows).toEqual([{ id: again.id }]);
});

test("concurrent enqueues whose reply is lost all reject, and each task exists once", async () => {
  const s = await proxied();
  const note = task("note", { input: type<{ n: number }>() });
  await s.behind.enqueue(note, { n: 0 });
  const lost = s.proxy.loseReply(of("enqueue_many"));
  const calls = [1, 2, 3, 4, 5].map((n) => s.behind.enqueue(note, { n }));
  const outcomes = await Promise.allSettled(calls);
  await lost;
  expect(outcomes).toMatchObject(calls.map(() => ({ status: "rejected", reason: { code: "database_unavailable" } })));
  const { rows } = await s.sql.query("select (input ->> 'n')::int as n from sluice.task order by id");
  expect(rows.map(({ n }: { n: number }) => n)).toEqual([0, 1, 2, 3, 4, 5]);
  expect((await s.behind.enqueue(note, { n: 6 })).existed).toBe(false);
});

test("a claim whose reply is lost releases its slots while the worker keeps its heartbeat", async () => {
  const s = await proxied();
  const runs: string[] = [];
  const single = task("single", {
    input: type<{ n: number }>(),
    concurrency: 1,
    order: ({ n }) => `key ${n % 2}`,
  });
  const handles = [];
  for (let n = 0; n < 4; n++) handles.push(await s.sluice.enqueue(single, { n }));
  const lost = s.proxy.loseReply(of("step", 1));
  const handler = single.handle((_, ctx) => void runs.push(`${ctx.id} ${ctx.attempt}`));
  const worker = await work(s, [handler]);
  await lost;
  for (const handle of handles) await handle.result({ timeoutMs: 10_000 });
  // Never seen, so never run: each runs once, and the lost claim used up no attempt.
  expect(runs).toEqual(handles.map(({ id }) => `${id} 1`));
  await sound(s, worker);
});

test("a completion whose reply is lost counts once", async () => {
  const s = await proxied();
  const runs: string[] = [];
  const job = task("job", { concurrency: 1 });
  const handle = await s.sluice.enqueue(job);
  const lost = s.proxy.loseReply((e) => of("step")(e) && e.asked.includes(`{${handle.id}}`));
  const worker = await work(s, [job.handle((_, ctx) => void runs.push(ctx.id))]);
  await lost;
  await handle.result({ timeoutMs: 10_000 });
  const next = await s.sluice.enqueue(job);
  await next.result({ timeoutMs: 10_000 });
  expect(runs).toEqual([handle.id, next.id]);
  await sound(s, worker);
  expect(worker.status().refused).toBe(1);
});

test("a failure whose reply is lost uses up one attempt", async () => {
  const s = await proxied();
  const attempts: number[] = [];
  const job = task("job", { concurrency: 1, retry: { attempts: 5, backoff: fixed(1) } });
  const handle = await s.sluice.enqueue(job);
  const lost = s.proxy.loseReply(of("settle"));
  const handler = job.handle((_, { attempt }) => {
    attempts.push(attempt);
    if (attempt < 3) throw new Error("not yet");
  });
  const worker = await work(s, [handler]);
  await lost;
  await handle.result({ timeoutMs: 10_000 });
  expect(attempts).toEqual([1, 2, 3]);
  await sound(s, worker);
});

test("a transaction whose commit is not answered has its effects once", async () => {
  const s = await proxied();
  await s.sql.query("create table effect (task bigint)");
  let runs = 0;
  const job = task("job", { concurrency: 1, retry: { backoff: fixed(1) } });
  const handle = await s.sluice.enqueue(job);
  const lost = s.proxy.loseReply((e) => e.statement === "commit");
  const handler = job.handle((_, ctx) => {
    runs++;
    return ctx.transaction(async (tx) => {
      await tx.query("insert into effect values ($1)", [ctx.id]);
    });
  });
  const worker = await work(s, [handler]);
  await lost;
  await handle.result({ timeoutMs: 10_000 });
  await sound(s, worker);
  expect((await s.sql.query("select * from effect")).rows).toHaveLength(1);
  expect(runs).toBe(1);
});

const frail = task("frail", { input: type<null>(), retry: { attempts: 1 } });
const frailFlow = workflow("frail", { input: type<null>() }, (w) => w.task("one", frail, null));

/** How often the task ran so far. It fails the first time. */
async function failsOnce(s: Proxied): Promise<() => number> {
  let runs = 0;
  const handler = frail.handle(() => {
    if (++runs === 1) throw new Error("not yet");
  });
  const worker = s.sluice.worker({ handlers: [handler], pollIntervalMs: 50 });
  onTestFinished(() => worker.stop({ graceMs: 0 }));
  await worker.start();
  return () => runs;
}

test("a retry of a run whose reply is lost returns the number of nodes, and retries once", async () => {
  const s = await proxied();
  const runs = await failsOnce(s);
  const { id } = await s.sluice.start(frailFlow, null);
  const run = s.behind.run(id);
  await expect(run.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
    code: "workflow_failed",
  });
  const lost = s.proxy.loseReply(of("workflow_retry"));
  expect(await run.retry()).toBe(1);
  await lost;
  await run.result({ timeoutMs: 10_000 });
  expect(runs()).toBe(2);
  expect(await run.retry()).toBe(0);
});

test("a completed retry of a run succeeds although its follow-up statements fail", async () => {
  const s = await proxied();
  await failsOnce(s);
  const { id } = await s.sluice.start(frailFlow, null);
  const run = s.behind.run(id);
  await expect(run.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
    code: "workflow_failed",
  });
  const trouble = s.proxy.loseRequests(of("workflow_continue"));
  expect(await run.retry()).toBe(1);
  trouble.end();
  await run.result({ timeoutMs: 10_000 });
});

test("a retry of a task whose reply is lost returns true, and retries once", async () => {
  const s = await proxied();
  const runs = await failsOnce(s);
  const { id } = await s.sluice.enqueue(frail, null);
  const handle = s.behind.task(id);
  await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
  const lost = s.proxy.loseReply(of("retry"));
  expect(await s.behind.retry(id)).toBe(true);
  await lost;
  await handle.result({ timeoutMs: 10_000 });
  expect(runs()).toBe(2);
  expect(await s.behind.retry(id)).toBe(false);
});

test("a claim in flight is not released when the reply of another claim is lost", async () => {
  const s = await proxied();
  const runs: string[] = [];
  const job = task("job", { input: type<{ n: number }>(), concurrency: 30 });
  const ids = (
    await s.sluice.enqueueMany(
      job,
      Array.from({ length: 60 }, (_, n) => ({ n })),
    )
  ).ids();
  // After a full claim both lines ask for more: the reply to one is late, to the other it is lost.
  const late = s.proxy.seeReply(of("step", 1)).then(() => s.proxy.holdReply(of("step", 1)));
  const lost = late.then(() => s.proxy.loseReply(of("step", 1)));
  const handler = job.handle(async (_, ctx) => {
    runs.push(ctx.id);
    await s.sql.query("select pg_sleep(0.002)");
  });
  const worker = await work(s, [handler], { claimBatchSize: 10 });
  const go = await late;
  await lost;
  await s.proxy.seeReply(of("release_unknown"));
  go();
  await until("all to end", async () => (await s.sluice.counts()).succeeded === ids.length);
  expect(runs.toSorted()).toEqual(ids.toSorted());
  await sound(s, worker);
});

test("an ended task whose outcome is not recorded yet is not released", async () => {
  const s = await proxied();
  const runs: string[] = [];
  const finish = signal();
  const job = task("job", { input: type<{ n: number }>() });
  const handler = job.handle(async (_, ctx) => {
    runs.push(ctx.id);
    await finish.promise;
  });
  const worker = await work(s, [handler]);
  const ids = (
    await s.sluice.enqueueMany(
      job,
      Array.from({ length: 5 }, (_, n) => ({ n })),
    )
  ).ids();
  await until("all to run", () => runs.length === 5);
  await s.proxy.loseReply(of("step"));
  // From now on no step succeeds, so outcomes have to wait, while heartbeats continue.
  const trouble = s.proxy.loseRequests(of("step"));
  finish.resolve();
  await s.proxy.seeReply(of("release_unknown"));
  await s.proxy.seeReply(of("release_unknown"));
  trouble.end();
  await until("all to end", async () => (await s.sluice.counts()).succeeded === ids.length);
  expect(runs).toHaveLength(5);
  await sound(s, worker);
});

test("a suspect whose claim is not answered is claimed again", async () => {
  const s = await proxied();
  const runs: string[] = [];
  const job = task("job", { concurrency: 1 });
  const handle = await s.sluice.enqueue(job);
  await s.sql.query(
    `with gone as (delete from sluice.ready where id = $1 returning *), counted as (insert into sluice.crash values ($1, '{1,2,3}'))
    insert into sluice.suspect (id, stream, attempt, lanes) select id, stream, attempt, lanes from gone`,
    [handle.id],
  );
  const lost = s.proxy.loseReply(of("claim_suspect", 1));
  const worker = await work(s, [job.handle((_, ctx) => void runs.push(ctx.id))]);
  await lost;
  await handle.result({ timeoutMs: 10_000 });
  expect(runs).toEqual([handle.id]);
  await sound(s, worker);
});

test("a half-open connection is abandoned, and all work resumes by itself", { timeout: 60_000 }, async () => {
  const s = await proxied();
  const runs: string[] = [];
  const aborted = signal<string>();
  const job = task("job", { input: type<{ long: boolean }>(), concurrency: 5 });
  const handler = job.handle(async ({ long }, ctx) => {
    runs.push(ctx.id);
    if (!long || runs.length > 1) return;
    await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve()));
    aborted.resolve((ctx.signal.reason as { code: string }).code);
  });
  const worker = await work(s, [handler], { leaseMs: 1_500 });
  const long = await s.sluice.enqueue(job, { long: true });
  await until("it to run", () => runs.length === 1);
  s.proxy.freeze();
  expect(await aborted.promise).toBe("lease_lost");
  const more = await s.sluice.enqueueMany(
    job,
    Array.from({ length: 20 }, () => ({ long: false })),
  );
  s.proxy.thaw();
  const backAt = performance.now();
  await long.result({ timeoutMs: 10_000 });
  for (const id of more) await s.sluice.task(id).result({ timeoutMs: 10_000 });
  expect(performance.now() - backAt).toBeLessThan(10_000);
  await sound(s, worker);
  // stop() does not hang on connections that are not answered.
  s.proxy.freeze();
  await worker.stop({ graceMs: 0 });
});

test("a producer on a half-open connection gets an error, and its next call succeeds", async () => {
  const s = await proxied();
  const note = task("note");
  await s.behind.enqueue(note);
  s.proxy.freeze();
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  onTestFinished(() => void vi.useRealTimers());
  const sent = s.behind.enqueue(note).catch((e: unknown) => e);
  for (let i = 0; i < 10; i++) await new Promise((resolve) => setImmediate(resolve));
  vi.advanceTimersByTime(30_000);
  expect(await sent).toMatchObject({ code: "database_unavailable" });
  vi.useRealTimers();
  s.proxy.thaw();
  await s.behind.enqueue(note);
});
