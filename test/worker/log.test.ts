import { expect, test } from "vitest";
import { z } from "zod";
import { fixed, SluiceError, task, type, workflow, type Logger } from "../../src/index.js";
import { ended, scene, signal, until } from "../flow/scene.js";

interface Line {
  readonly level: string;
  readonly message: string;
  readonly fields: Record<string, unknown>;
}

function recorder() {
  const lines: Line[] = [];
  const at =
    (level: string) =>
    (message: string, fields: Record<string, unknown> = {}) =>
      void lines.push({ level, message, fields });
  const logger: Logger = {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
  };
  const of = (level: string, message: string) =>
    lines.filter((line) => line.level === level && line.message === message);
  return { logger, of };
}

const RETRIED = "a task failed and will be retried";
const TASKS = 20;
const numbers = Array.from({ length: TASKS }, (_, n) => n);

test("every final failure is logged, and retried failures once a second", async () => {
  const { logger, of } = recorder();
  const s = await scene({ logger });
  const job = task("job", {
    input: type<number>(),
    retry: { attempts: 2, backoff: fixed(1) },
  });
  await s.worker({
    handlers: [
      job.handle((n) => {
        throw new TypeError(`no ${n}`);
      }),
    ],
  });
  const ids = (await s.sluice.enqueueMany(job, numbers)).ids();
  await ended(s, TASKS);
  // A failure is logged when the reply to its recording has arrived.
  const final = await until("all to be logged", () => {
    const lines = of("error", "a task failed for good");
    return lines.length >= TASKS ? lines : undefined;
  });
  expect(final).toHaveLength(TASKS);
  const fields = final.map((line) => line.fields).toSorted((a, b) => Number(a.task) - Number(b.task));
  expect(fields).toEqual(
    numbers.map((n) => ({
      task: ids[n],
      type: "job",
      attempt: 2,
      error: `no ${n}`,
      stack: expect.stringContaining("log.test.ts") as string,
    })),
  );
  // All in one second, except on a slow machine. The rest is logged when that second is over.
  const retried = () => of("warn", RETRIED).map(({ fields: { suppressed = 0 } }) => suppressed);
  expect(retried().length).toBeLessThan(TASKS);
  await until(
    "all to be counted",
    () => retried().length + retried().reduce<number>((a, b) => a + Number(b), 0) === TASKS,
  );
});

test("stop writes suppressed log lines immediately", async () => {
  const { logger, of } = recorder();
  const s = await scene({ logger });
  const job = task("job", { input: type<number>(), retry: { backoff: fixed(60_000) } });
  const worker = await s.worker({
    handlers: [
      job.handle(() => {
        throw new Error("no");
      }),
    ],
  });
  await s.sluice.enqueueMany(job, numbers);
  await until("all to have failed once", () => worker.status().failed === TASKS);
  await s.sluice.close();
  const told = of("warn", RETRIED).map(({ fields: { suppressed = 0 } }) => suppressed);
  expect(told.reduce<number>((a, b) => a + Number(b), told.length)).toBe(TASKS);
});

test("tasks that fail because of a lost database are logged once, not one by one", async () => {
  const { logger, of } = recorder();
  const s = await scene({ logger });
  const job = task("job", { input: type<number>(), retry: { attempts: 1 } });
  await s.worker({
    handlers: [
      job.handle(() => {
        throw new SluiceError("database_unavailable", "gone");
      }),
    ],
  });
  await s.sluice.enqueueMany(job, numbers);
  await ended(s, TASKS);
  expect(of("error", "a task failed for good")).toEqual([]);
  const told = await until("it to be logged", () => {
    const lines = of("warn", "the database is not available");
    return lines.length > 0 ? lines : undefined;
  });
  expect(told[0]?.fields).toEqual({ trouble: "a task failed for good", error: "gone" });
  expect(told.length).toBeLessThan(TASKS);
});

test("the stored number of attempts decides whether a failure is logged as final, not the worker's", async () => {
  const { logger, of } = recorder();
  const s = await scene({ logger });
  const retry = (attempts: number) => ({ retry: { attempts, backoff: fixed(1) } });
  const [once, often] = [task("job", retry(1)), task("job", retry(3))];
  const throws = (): never => {
    throw new Error("no");
  };
  const attemptsOf = (level: string, message: string) => of(level, message).map(({ fields }) => fields["attempt"]);
  const first = await s.worker({ handlers: [once.handle(throws)] });
  const patient = await s.sluice.enqueue(often);
  await expect(patient.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
  await until("the failure to be logged", () => of("error", "a task failed for good").length === 1);
  expect(of("error", "a task failed for good")[0]?.fields).toMatchObject({ task: patient.id, attempt: 3 });
  await first.stop();
  expect(attemptsOf("warn", RETRIED)[0]).toBe(1);

  await s.worker({ handlers: [often.handle(throws)] });
  const hasty = await s.sluice.enqueue(once);
  await expect(hasty.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
  await until("the failure to be logged", () => of("error", "a task failed for good").length === 2);
  expect(of("error", "a task failed for good")[1]?.fields).toMatchObject({ task: hasty.id, attempt: 1 });
});

test("an invalid input of a workflow's task is logged as a final failure, and another one as retried", async () => {
  const { logger, of } = recorder();
  const s = await scene({ logger });
  const lax = task("job", { input: type<{ n: unknown }>(), retry: { backoff: fixed(60_000) } });
  const strict = task("job", { input: z.object({ n: z.number() }), retry: { backoff: fixed(60_000) } });
  const flow = workflow("flow", {}, (w) => w.task("job", lax, { n: "text" }));
  const run = await s.sluice.start(flow);
  const alone = await s.sluice.enqueue(lax, { n: "text" });
  await s.worker({ handlers: [strict.handle(() => 1)] });
  await expect(run.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "workflow_failed" });
  const [final] = await until("the final failure", () => {
    const lines = of("error", "a task failed for good");
    return lines.length > 0 ? lines : undefined;
  });
  expect(final?.fields).toMatchObject({
    type: "job",
    attempt: 1,
    error: expect.stringContaining("not valid") as string,
  });
  const [retried] = await until("the other failure", () => {
    const lines = of("warn", RETRIED);
    return lines.length > 0 ? lines : undefined;
  });
  expect(retried?.fields).toMatchObject({ task: alone.id, attempt: 1 });
  expect(of("error", "a task failed for good")).toHaveLength(1);
});

test("a failure whose task was cancelled meanwhile is not logged as final", async () => {
  const { logger, of } = recorder();
  // Without LISTEN and with a long lease, the request to stop does not reach the handler in time.
  const s = await scene({ logger, listen: false });
  const job = task("job", { retry: { attempts: 1 } });
  const [started, fails] = [signal(), signal()];
  await s.worker({
    leaseMs: 60_000,
    handlers: [
      job.handle(async () => {
        started.resolve();
        await fails.promise;
        throw new Error("no");
      }),
    ],
  });
  const handle = await s.sluice.enqueue(job);
  await started.promise;
  expect(await handle.cancel()).toBe("asked");
  fails.resolve();
  await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_cancelled" });
  await until(
    "the failure to be logged",
    () => of("warn", "a task failed and will not be retried, because it was cancelled").length === 1,
  );
  expect(of("error", "a task failed for good")).toEqual([]);
});

test("a logger that throws loses no outcome", async () => {
  const refuse = (): never => {
    throw new Error("disk full");
  };
  const s = await scene({ logger: { debug: refuse, info: () => {}, warn: refuse, error: refuse } });
  const job = task("job", { retry: { attempts: 1 } });
  await s.worker({
    handlers: [
      job.handle(() => {
        throw new Error("no");
      }),
    ],
  });
  const handle = await s.sluice.enqueue(job);
  await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
});

test("a result that is replaced by a note is logged", async () => {
  const { logger, of } = recorder();
  const s = await scene({ logger, resultBytesMax: 2_000 });
  const job = task("job", { input: type<"plain" | "in a transaction">() });
  const large = "x".repeat(5_000);
  await s.worker({
    handlers: [job.handle((how, ctx) => (how === "plain" ? large : ctx.transaction(() => Promise.resolve(large))))],
  });
  const told = () => of("warn", "a result is too large; a note of its size is stored instead");
  for (const how of ["plain", "in a transaction"] as const) {
    const before = told().length;
    const handle = await s.sluice.enqueue(job, how);
    expect(await handle.result({ timeoutMs: 10_000 })).toMatchObject({ truncated: true });
    const line = await until("it to be told", () => told()[before]);
    expect(line.fields).toEqual({ task: handle.id, type: "job", bytes: 5_002, bytesMax: 2_000 });
  }
});
