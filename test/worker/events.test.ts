import { describe, expect, expectTypeOf, onTestFinished, test, vi } from "vitest";
import {
  cancel,
  fixed,
  limit,
  snooze,
  task,
  type,
  type FailedEvent,
  type Logger,
  type RetryingEvent,
  type Sluice,
  type SluiceEventName,
  type SluiceEvents,
} from "../../src/index.js";
import { Database } from "../../src/postgres/database.js";
import { stall } from "../../src/testing/index.js";
import { ended, scene, signal, until } from "../flow/scene.js";
import { kit } from "../testing/kit.js";

type Told = [name: SluiceEventName, event: SluiceEvents[SluiceEventName]];
const NAMES: readonly SluiceEventName[] = ["succeeded", "failed", "retrying", "cancelled", "stalled", "limitFull"];

function heard(sluice: Sluice, names: readonly SluiceEventName[] = NAMES): Told[] {
  const told: Told[] = [];
  for (const name of names) sluice.on(name, (event) => told.push([name, event]));
  return told;
}

const named = (told: Told[], id: string): string[] => told.filter(([, e]) => e.id === id).map(([name]) => name);

describe("sluice.on()", () => {
  test("every outcome is reported once, with the task, the attempt and the worker", async () => {
    const s = await scene();
    const told = heard(s.sluice);
    const job = task("job", {
      input: type<"succeed" | "commit" | "fail" | "cancel" | "snooze">(),
      queue: "mail",
      retry: { attempts: 2, backoff: fixed(50) },
    });
    await s.worker({
      name: "red",
      handlers: [
        job.handle(async (how, ctx) => {
          if (how === "commit") await ctx.transaction(async () => {});
          if (how === "fail") throw new TypeError(`no ${ctx.attempt}`);
          if (how === "cancel") throw cancel("closed");
          if (how === "snooze" && told.length < 4) throw snooze(50);
        }),
      ],
    });
    const enqueue = async (how: "succeed" | "commit" | "fail" | "cancel" | "snooze") =>
      (await s.sluice.enqueue(job, how)).id;
    const [succeed, commit, fail, cancelled, snoozed] = [
      await enqueue("succeed"),
      await enqueue("commit"),
      await enqueue("fail"),
      await enqueue("cancel"),
      await enqueue("snooze"),
    ];
    await ended(s, 5);
    await until("all events", () => told.length >= 6);
    expect(named(told, succeed)).toEqual(["succeeded"]);
    expect(named(told, commit)).toEqual(["succeeded"]);
    expect(named(told, fail)).toEqual(["retrying", "failed"]);
    expect(named(told, cancelled)).toEqual(["cancelled"]);
    expect(named(told, snoozed)).toEqual(["succeeded"]);
    const of = (id: string, name: string) => told.find(([n, e]) => n === name && e.id === id)![1];
    const about = { type: "job", queue: "mail", attempt: 1, worker: "red", durationMs: expect.any(Number) };
    expect(of(succeed, "succeeded")).toEqual({ id: succeed, ...about });
    expect(of(cancelled, "cancelled")).toEqual({ id: cancelled, ...about, reason: "closed" });
    const retrying = of(fail, "retrying") as RetryingEvent;
    expect(retrying).toEqual({ id: fail, ...about, error: new TypeError("no 1"), willRetryAt: expect.any(Date) });
    expect(Math.abs(retrying.willRetryAt.getTime() - Date.now())).toBeLessThan(20_000);
    expect(of(fail, "failed")).toEqual({ id: fail, ...about, attempt: 2, error: new TypeError("no 2") });
  });

  test("an outcome is reported after the database has recorded it", async () => {
    const s = await scene();
    const job = task("job", { input: type<boolean>(), retry: { attempts: 1 } });
    const states: Promise<string | undefined>[] = [];
    for (const name of ["succeeded", "failed"] as const)
      s.sluice.on(
        name,
        ({ id }) =>
          void states.push(
            s.sluice
              .task(id)
              .status()
              .then((status) => status?.state),
          ),
      );
    await s.worker({
      handlers: [
        job.handle((works) => {
          if (!works) throw new Error("no");
        }),
      ],
    });
    await s.sluice.enqueue(job, true);
    await until("the success", () => states.length === 1);
    await s.sluice.enqueue(job, false);
    await until("the failure", () => states.length === 2);
    expect(await Promise.all(states)).toEqual(["succeeded", "failed"]);
  });

  test("the stored attempts decide between retrying and failed, not those of the worker's code", async () => {
    const s = await scene();
    const told = heard(s.sluice);
    const once = task("job", { retry: { attempts: 1 } });
    const often = task("job", { retry: { attempts: 9, backoff: fixed(1) } });
    const handle = await s.sluice.enqueue(once);
    await s.worker({
      handlers: [
        often.handle(() => {
          throw new Error("no");
        }),
      ],
    });
    await until("an event", () => told.length > 0);
    expect(told).toMatchObject([["failed", { id: handle.id }]]);
  });

  test("an outcome whose lease was lost is not reported", async () => {
    const s = await scene({ logger: { debug() {}, info() {}, warn() {}, error() {} } });
    const told = heard(s.sluice, ["succeeded", "failed", "retrying", "cancelled"]);
    let runs = 0;
    const job = task("job");
    const worker = await s.worker({
      handlers: [
        job.handle(async () => {
          // The lease ends at the last moment: the worker learns it when it records the outcome.
          if (++runs === 1) await s.sql.query("update sluice.worker set expires_at = now() - interval '1 hour'");
        }),
      ],
    });
    const handle = await s.sluice.enqueue(job);
    await handle.result({ timeoutMs: 20_000 });
    await until("the second execution", () => runs === 2 && told.length > 0 && worker.status().permitsInUse === 0);
    expect(told.map(([name]) => name)).toEqual(["succeeded"]);
  });

  test("a listener that throws or rejects is logged, and breaks neither other listeners nor the worker", async () => {
    const lines: [string, unknown][] = [];
    const quiet = (): void => {};
    const logger: Logger = {
      debug: quiet,
      info: quiet,
      warn: quiet,
      error: (message, fields) => void lines.push([message, fields]),
    };
    const s = await scene({ logger });
    s.sluice.on("succeeded", () => {
      throw new Error("breaks");
    });
    s.sluice.on("failed", () => Promise.reject(new Error("breaks later")));
    const told = heard(s.sluice, ["succeeded", "failed"]);
    const job = task("job", { input: type<boolean>(), retry: { attempts: 1 } });
    const worker = await s.worker({
      handlers: [
        job.handle((works) => {
          if (!works) throw new Error("no");
        }),
      ],
    });
    await s.sluice.enqueue(job, true);
    await s.sluice.enqueue(job, false);
    await until("both events", () => told.length === 2);
    await until("both lines", () => lines.filter(([message]) => message === "a listener failed").length === 2);
    expect(lines).toContainEqual(["a listener failed", { event: "succeeded", error: "breaks" }]);
    expect(lines).toContainEqual(["a listener failed", { event: "failed", error: "breaks later" }]);
    await until("the permits", () => worker.status().permitsInUse === 0);
    expect(worker.status()).toMatchObject({ completed: 1, failed: 1, refused: 0 });
  });

  test("a removed listener hears nothing, and one that was added twice is removed once", async () => {
    const s = await scene();
    let calls = 0;
    const count = (): void => void calls++;
    const remove = s.sluice.on("succeeded", count);
    s.sluice.on("succeeded", count);
    remove();
    remove();
    const job = task("job");
    await s.worker({ handlers: [job.handle(() => {})] });
    await (await s.sluice.enqueue(job)).result();
    await until("the call", () => calls > 0);
    expect(calls).toBe(1);
    expect(() => s.sluice.on("done" as never, count)).toThrow(/event must be "succeeded" or "failed"/);
    expect(() => s.sluice.on("failed", 5 as never)).toThrow(/listener must be a function/);
  });

  test("a handler that exceeds its timeout is stalled, and again if it ignores its signal", async () => {
    const s = await scene();
    const told = heard(s.sluice, ["stalled", "failed"]);
    const finish = signal();
    const job = task("job", { input: type<"listens" | "deaf">(), timeoutMs: 100, retry: { attempts: 1 } });
    await s.worker({
      handlers: [
        job.handle((how, { signal: aborted }) =>
          how === "deaf"
            ? finish.promise
            : new Promise((_, reject) => aborted.addEventListener("abort", () => reject(new Error("stopped")))),
        ),
      ],
    });
    const listens = await s.sluice.enqueue(job, "listens");
    const deaf = await s.sluice.enqueue(job, "deaf");
    await until("both failures", () => told.filter(([name]) => name === "failed").length === 2);
    finish.resolve();
    const of = (id: string) => told.filter(([, e]) => e.id === id);
    expect(of(listens.id)).toMatchObject([
      ["stalled", { cause: "timeout", abortCode: "timeout" }],
      ["failed", { error: { code: "timeout" } }],
    ]);
    expect(of(deaf.id)).toMatchObject([
      ["stalled", { cause: "timeout", abortCode: "timeout" }],
      ["stalled", { cause: "abort_ignored", abortCode: "timeout" }],
      ["failed", { error: { code: "timeout" } }],
    ]);
    expect((of(deaf.id)[1]![1] as { durationMs: number }).durationMs).toBeGreaterThan(1_000);
  });

  test("a cancel of a running task is reported with its reason", async () => {
    const s = await scene();
    const told = heard(s.sluice, ["cancelled", "failed", "retrying"]);
    const began = signal();
    const job = task("job");
    await s.worker({
      handlers: [
        job.handle(async (_, { signal: aborted }) => {
          began.resolve();
          await new Promise((_resolve, reject) => aborted.addEventListener("abort", () => reject(new Error("ok"))));
        }),
      ],
    });
    const handle = await s.sluice.enqueue(job);
    await began.promise;
    await handle.cancel({ reason: "order withdrawn" });
    await until("the event", () => told.length > 0);
    expect(told).toMatchObject([["cancelled", { id: handle.id, reason: "order withdrawn" }]]);
  });

  test("a full limit is reported with its name, once for many tasks, also without metrics", async () => {
    const s = await scene();
    const told = heard(s.sluice, ["limitFull"]);
    const api = limit("api", { total: 2 });
    const job = task("job", { input: type<number>(), limits: [api] });
    await s.sluice.enqueueMany(job, [1, 2, 3, 4, 5, 6]);
    const finish = signal();
    const worker = await s.worker({
      name: "red",
      metrics: { enabled: false },
      handlers: [job.handle(() => finish.promise)],
    });
    await until("two to run", () => worker.status().inFlight === 2);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(told).toEqual([]);
    finish.resolve();
    await ended(s, 6);
    await until("the event", () => told.length > 0);
    expect(told).toMatchObject([["limitFull", { limit: "api", perKey: false, type: "job", worker: "red" }]]);
  });

  test("a worker that stops reports its last outcomes first", async () => {
    const s = await scene();
    // oxlint-disable-next-line typescript/unbound-method -- called with its own this below
    const { run } = Database.prototype;
    const slow = vi.spyOn(Database.prototype, "run").mockImplementation(async function (this: Database, ...args) {
      if (args[0].name === "task_fates") await new Promise((resolve) => setTimeout(resolve, 500));
      return run.apply(this, args);
    });
    onTestFinished(() => slow.mockRestore());
    const told = heard(s.sluice, ["retrying"]);
    const [began, finish] = [signal(), signal()];
    const job = task("job", { retry: { attempts: 2, backoff: fixed(60_000) } });
    const worker = await s.worker({
      handlers: [
        job.handle(async () => {
          began.resolve();
          await finish.promise;
          throw new Error("no");
        }),
      ],
    });
    await s.sluice.enqueue(job);
    await began.promise;
    const stopped = worker.stop();
    finish.resolve();
    await stopped;
    expect(told).toMatchObject([["retrying", { attempt: 1 }]]);
  });
});

test("a drain reports what it has recorded, with the clock of the test", async () => {
  const job = task("job", { input: type<boolean>(), retry: { attempts: 2, backoff: fixed(60_000) } });
  const handler = job.handle((works) => {
    if (!works) throw new Error("no");
  });
  const t = await kit({ handlers: [handler], now: new Date("2026-01-01T00:00:00Z") });
  const told = heard(t.sluice);
  await t.sluice.enqueue(job, true);
  await t.drain();
  expect(told.splice(0)).toMatchObject([["succeeded", { worker: "drain", durationMs: 0 }]]);
  await t.sluice.enqueue(job, false);
  await t.drain();
  expect(told.splice(0)).toMatchObject([["retrying", { willRetryAt: new Date("2026-01-01T00:01:00Z") }]]);
  await t.clock.advance(60_000);
  await t.drain();
  expect(told.splice(0)).toMatchObject([["failed", { attempt: 2 }]]);
  await t.sluice.enqueue(job, true);
  const { ran } = await t.drain({ faults: [stall(job)] });
  expect(ran.map(({ outcome }) => outcome)).toEqual(["refused", "succeeded"]);
  expect(told.map(([name]) => name)).toEqual(["succeeded"]);
});

test("a closed Sluice refuses listeners", async () => {
  const s = await scene();
  await s.sluice.close();
  expect(() => s.sluice.on("failed", () => {})).toThrow(expect.objectContaining({ code: "closed" }));
});

test("the events have types of their own", () => {
  const compiled = (sluice: Sluice): void => {
    sluice.on("failed", (event) => expectTypeOf(event).toEqualTypeOf<FailedEvent>());
    sluice.on("retrying", async ({ willRetryAt }) => expectTypeOf(willRetryAt).toEqualTypeOf<Date>());
    // @ts-expect-error -- there is no such event
    sluice.on("finished", () => {});
    // @ts-expect-error -- a success has no error
    sluice.on("succeeded", ({ error }) => error);
  };
  expect(compiled).toBeTypeOf("function");
});
