import { expect, test } from "vitest";
import { cancel, fail, FatalError, fixed, snooze, task, type } from "../../src/index.js";
import { violations } from "../support/audit.js";
import { scene, signal, until } from "../flow/scene.js";

test("a snoozed task keeps its place in its order key and its attempts", async () => {
  const s = await scene();
  const seen: string[] = [];
  const step = task("step", {
    input: type<number>(),
    order: () => "k",
    retry: { attempts: 2, backoff: fixed(1) },
  });
  let naps = 0;
  await s.worker({
    handlers: [
      step.handle((n, ctx) => {
        seen.push(`${n}, attempt ${ctx.attempt}`);
        if (n === 1 && naps++ < 3) throw snooze(20);
      }),
    ],
  });
  const handles = [];
  for (const n of [1, 2, 3]) handles.push(await s.sluice.enqueue(step, n));
  await handles.at(-1)!.result({ timeoutMs: 10_000 });
  expect(seen).toEqual([
    "1, attempt 1",
    "1, attempt 1",
    "1, attempt 1",
    "1, attempt 1",
    "2, attempt 1",
    "3, attempt 1",
  ]);
  expect(await handles[0]!.status()).toMatchObject({ state: "succeeded", attempt: 1 });
  expect(await violations(s.sql)).toEqual([]);
});

test("a snoozed task releases the slots of its limits to other tasks", async () => {
  const s = await scene();
  const seen: string[] = [];
  const job = task("job", { input: type<"naps" | "works">(), concurrency: 1 });
  const worked = signal();
  await s.worker({
    handlers: [
      job.handle((input) => {
        seen.push(input);
        if (input === "works") worked.resolve();
        else throw snooze(60_000);
      }),
    ],
  });
  const naps = await s.sluice.enqueue(job, "naps");
  await s.sluice.enqueue(job, "works");
  await worked.promise;
  expect(seen).toEqual(["naps", "works"]);
  expect(await naps.status()).toMatchObject({ state: "scheduled", attempt: 0 });
});

test("throw cancel() ends the task as cancelled, with its reason and without a retry", async () => {
  const s = await scene();
  let runs = 0;
  const job = task("job", { input: type<string>() });
  await s.worker({
    handlers: [
      job.handle((reason) => {
        runs++;
        throw reason === "" ? cancel() : cancel(reason);
      }),
    ],
  });
  const told = await s.sluice.enqueue(job, "account closed");
  await expect(told.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
    code: "task_cancelled",
    details: { reason: "account closed" },
  });
  const silent = await s.sluice.enqueue(job, "");
  await expect(silent.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
    code: "task_cancelled",
    details: { reason: null },
  });
  expect(runs).toBe(2);
});

test("a handler that throws or returns fail() or a FatalError fails its task at once, without a retry", async () => {
  const s = await scene();
  class Gone extends FatalError {
    override readonly name = "Gone";
  }
  const runs: string[] = [];
  const job = task("job", { input: type<string>(), output: type<number>(), retry: { attempts: 5, backoff: fixed(1) } });
  await s.worker({
    handlers: [
      job.handle((how, ctx) => {
        runs.push(`${how} ${ctx.attempt}`);
        if (how === "throw") throw fail("no account");
        if (how === "class") throw new Gone("no account");
        if (how === "transaction") return ctx.transaction(() => Promise.reject(fail("no account")));
        return fail("no account");
      }),
    ],
  });
  for (const how of ["throw", "return", "class", "transaction"]) {
    const handle = await s.sluice.enqueue(job, how);
    const name = how === "class" ? "Gone" : "FatalError";
    await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
      code: "task_failed",
      details: { attempt: 1, error: { name, message: "no account" } },
    });
    expect(await handle.status()).toMatchObject({ state: "failed", attempt: 1, attemptsMax: 5 });
  }
  expect(runs).toEqual(["throw 1", "return 1", "class 1", "transaction 1"]);
});

test("a task is attempted as often as its policy says, with the delays of its backoff", async () => {
  const s = await scene();
  const asked: number[] = [];
  const starts: number[] = [];
  const job = task("job", {
    retry: {
      attempts: 3,
      backoff: (attempt) => {
        asked.push(attempt);
        return 30;
      },
    },
  });
  await s.worker({
    pollIntervalMs: 10,
    handlers: [
      job.handle(() => {
        starts.push(performance.now());
        throw new Error("no");
      }),
    ],
  });
  const handle = await s.sluice.enqueue(job);
  await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
    code: "task_failed",
    details: { attempt: 3, error: { name: "Error", message: "no" } },
  });
  expect(asked).toEqual([1, 2, 3]);
  expect(Math.min(starts[1]! - starts[0]!, starts[2]! - starts[1]!)).toBeGreaterThanOrEqual(30);
});

test("retry() runs failed and cancelled tasks again from their first attempt, and no others", async () => {
  const s = await scene();
  let fails = true;
  const attempts: number[] = [];
  const job = task("job", {
    input: type<string>(),
    retry: { attempts: 2, backoff: fixed(1) },
    concurrency: 1,
    order: (input) => input,
  });
  await s.worker({
    handlers: [
      job.handle((_, ctx) => {
        attempts.push(ctx.attempt);
        if (fails) throw new Error("no");
        return "done";
      }),
    ],
  });
  const failed = await s.sluice.enqueue(job, "a");
  await expect(failed.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
  const cancelled = await s.sluice.enqueue(job, "b", { delayMs: 60_000 });
  expect(await cancelled.cancel()).toBe("cancelled");
  fails = false;
  attempts.length = 0;
  for (const handle of [failed, cancelled]) {
    expect(await s.sluice.retry(handle.id)).toBe(true);
    expect(await handle.result({ timeoutMs: 10_000 })).toBe("done");
    expect(await s.sluice.retry(handle.id)).toBe(false);
  }
  expect(attempts).toEqual([1, 1]);
  expect(await s.sluice.retry("999999")).toBe(false);
  expect(await violations(s.sql)).toEqual([]);
});

test("onFailure: continue starts the next task of the key after a final failure", async () => {
  const s = await scene();
  const seen: number[] = [];
  const step = task("step", {
    input: type<number>(),
    order: { key: () => "k", onFailure: "continue" },
    retry: { attempts: 2, backoff: fixed(1) },
  });
  await s.worker({
    handlers: [
      step.handle((n) => {
        seen.push(n);
        if (n === 1) throw new Error("no");
      }),
    ],
  });
  const ids = (await s.sluice.enqueueMany(step, [1, 2, 3])).ids();
  await s.sluice.task(ids[2]!).result({ timeoutMs: 10_000 });
  expect(seen).toEqual([1, 1, 2, 3]);
});

test("onFailure: block stops the key until the task is retried or unblocked", async () => {
  const s = await scene();
  const seen: string[] = [];
  let broken = true;
  const step = task("step", {
    input: type<{ key: string; n: number }>(),
    order: { key: ({ key }) => key, onFailure: "block" },
    retry: { attempts: 1 },
    concurrency: 2,
  });
  await s.worker({
    handlers: [
      step.handle(({ key, n }) => {
        seen.push(`${key}${n}`);
        if (n === 1 && broken) throw new Error("no");
      }),
    ],
  });
  const of = (key: string): { key: string; n: number }[] => [1, 2].map((n) => ({ key, n }));
  const a = (await s.sluice.enqueueMany(step, of("a"))).ids().map((id) => s.sluice.task(id));
  const b = (await s.sluice.enqueueMany(step, of("b"))).ids().map((id) => s.sluice.task(id));
  for (const first of [a[0]!, b[0]!])
    await expect(first.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
      code: "task_failed",
    });
  // Another key passes by, so there was time enough for the blocked ones to come, had they been free.
  await (await s.sluice.enqueue(step, { key: "c", n: 2 })).result({ timeoutMs: 10_000 });
  expect(seen.toSorted()).toEqual(["a1", "b1", "c2"]);
  expect([(await a[1]!.status())?.state, (await b[1]!.status())?.state]).toEqual(["waiting", "waiting"]);

  seen.length = 0;
  broken = false;
  expect(await s.sluice.retry(a[0]!.id)).toBe(true);
  await a[1]!.result({ timeoutMs: 10_000 });
  expect(seen).toEqual(["a1", "a2"]);
  expect(await s.sluice.unblock(b[0]!.id)).toBe(true);
  expect(await s.sluice.unblock(b[0]!.id)).toBe(false);
  await b[1]!.result({ timeoutMs: 10_000 });
  expect(seen).toEqual(["a1", "a2", "b2"]);
  expect((await b[0]!.status())?.state).toBe("failed");
  expect(await violations(s.sql)).toEqual([]);
});

test("tasks with a higher priority run first, equal ones by age, and an order key ignores priority", async () => {
  const s = await scene();
  const seen: string[] = [];
  const job = task("job", {
    input: type<{ name: string; order?: string }>(),
    order: ({ order }) => order,
  });
  for (const [name, priority] of [
    ["low", -5],
    ["first", 0],
    ["second", 0],
    ["high", 7],
  ] as const)
    await s.sluice.enqueue(job, { name }, { priority });
  await s.worker({
    maxConcurrentTasks: 1,
    handlers: [job.handle(({ name }) => void seen.push(name))],
  });
  await until("all to end", async () => (await s.sluice.counts()).succeeded === 4);
  expect(seen).toEqual(["high", "first", "second", "low"]);

  await s.sluice.pause("default");
  const keyed = [];
  for (const [name, priority] of [
    ["one", -3],
    ["two", 9],
    ["three", 0],
  ] as const)
    keyed.push(await s.sluice.enqueue(job, { name, order: "k" }, { priority }));
  seen.length = 0;
  await s.sluice.resume("default");
  for (const handle of keyed) await handle.result({ timeoutMs: 10_000 });
  expect(seen).toEqual(["one", "two", "three"]);
});

test("a delayed task runs when it is due, and joins its order key only then", async () => {
  const s = await scene();
  const seen: string[] = [];
  const job = task("job", { input: type<string>(), order: () => "k" });
  await s.worker({ pollIntervalMs: 20, handlers: [job.handle((name) => void seen.push(name))] });
  const hours = (n: number): Date => new Date(Date.now() + n * 3_600_000);
  const anHourLater = () => s.sql.query("update sluice.scheduled set run_at = run_at - interval '1 hour'");
  const inTwo = hours(2);
  const later = await s.sluice.enqueue(job, "later", { runAt: inTwo });
  expect(await later.status()).toMatchObject({ state: "scheduled", runAt: inTwo });
  const soon = await s.sluice.enqueue(job, "soon", { runAt: hours(1) });
  // Neither stands before it in their key yet.
  await (await s.sluice.enqueue(job, "now")).result({ timeoutMs: 10_000 });
  await anHourLater();
  await soon.result({ timeoutMs: 10_000 });
  expect(await later.status()).toMatchObject({ state: "scheduled" });
  await anHourLater();
  await later.result({ timeoutMs: 10_000 });
  expect(seen).toEqual(["now", "soon", "later"]);
  const runAt = new Date(Date.now() + 200);
  const last = await s.sluice.enqueue(job, "last", { runAt });
  await last.result({ timeoutMs: 10_000 });
  expect((await last.status())!.startedAt!.getTime()).toBeGreaterThanOrEqual(runAt.getTime());
  expect(await violations(s.sql)).toEqual([]);
});
