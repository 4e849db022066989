import { expect, test } from "vitest";
import { fixed, SluiceError, task, type, type Logger } from "../../src/index.js";
import { ended, scene, until } from "../flow/scene.js";

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
  const final = of("error", "a task failed for good");
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
  const retried = () => of("warn", "a task failed").map(({ fields: { suppressed = 0 } }) => suppressed);
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
  const told = of("warn", "a task failed").map(({ fields: { suppressed = 0 } }) => suppressed);
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
  const told = of("warn", "the database is not available");
  expect(told[0]?.fields).toEqual({ trouble: "a task failed for good", error: "gone" });
  expect(told.length).toBeLessThan(TASKS);
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
