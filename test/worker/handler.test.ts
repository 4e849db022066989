import { expect, onTestFinished, test } from "vitest";
import { cancel, fixed, snooze, task, type } from "../../src/index.js";
import { violations } from "../support/audit.js";
import { ended, scene, signal, until } from "../flow/scene.js";

const once = { attempts: 1 };

interface Stored {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
}

test("any value that a handler throws is stored, and the worker continues", async () => {
  const s = await scene();
  const circular: { self?: unknown } = {};
  circular.self = circular;
  const thrown: Record<string, unknown> = {
    undefined: undefined,
    null: null,
    text: "plain text",
    number: 42,
    circular,
    huge: new Error("x".repeat(10 * 1024 * 1024)),
    unstorable: new Error("a \0 and a \ud800"),
    hostile: new Proxy(
      {},
      {
        get: () => {
          throw new Error("no");
        },
        getPrototypeOf: () => {
          throw new Error("no");
        },
      },
    ),
    frozen: Object.freeze(new TypeError("cold")),
  };
  const job = task("job", { input: type<string>(), retry: once });
  const worker = await s.worker({
    handlers: [
      job.handle((what) => {
        throw thrown[what];
      }),
    ],
  });
  const handles = new Map<string, Awaited<ReturnType<typeof s.sluice.enqueue>>>();
  for (const what of Object.keys(thrown)) handles.set(what, await s.sluice.enqueue(job, what));
  const outcome = async (what: string): Promise<Stored> => {
    const handle = handles.get(what)!;
    await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
      code: "task_failed",
    });
    return (await handle.status())!.outcome as Stored;
  };
  expect(await outcome("undefined")).toMatchObject({ name: "NonError", message: "undefined" });
  expect(await outcome("null")).toMatchObject({ name: "NonError", message: "null" });
  expect(await outcome("text")).toMatchObject({ name: "NonError", message: "plain text" });
  expect(await outcome("number")).toMatchObject({ name: "NonError", message: "42" });
  expect((await outcome("circular")).message).toContain("[circular]");
  const huge = await outcome("huge");
  expect(huge.message.length).toBeGreaterThan(1_000);
  expect(JSON.stringify(huge).length).toBeLessThan(64 * 1024);
  expect((await outcome("unstorable")).message).toBe("a \ufffd and a \ufffd");
  await outcome("hostile");
  expect(await outcome("frozen")).toMatchObject({ name: "TypeError", message: "cold" });
  await until("the permits to come back", () => worker.status().permitsInUse === 0);
  expect(worker.status().failed).toBe(handles.size);
});

test("a handler that exceeds its timeout is aborted, counts as a failure and returns its permit", async () => {
  const s = await scene();
  const reasons: unknown[] = [];
  const attempts: number[] = [];
  const job = task("job", {
    input: type<"listens" | "deaf">(),
    concurrency: 1,
    timeoutMs: 100,
    retry: { attempts: 2, backoff: fixed(1) },
  });
  const worker = await s.worker({
    maxConcurrentTasks: 1,
    handlers: [
      job.handle(async (input, ctx) => {
        attempts.push(ctx.attempt);
        if (input === "deaf") return new Promise<void>(() => {});
        await new Promise<void>((_, reject) =>
          ctx.signal.addEventListener("abort", () => {
            reasons.push((ctx.signal.reason as { code: string }).code);
            reject(new Error("my own words"));
          }),
        );
      }),
    ],
  });
  for (const input of ["listens", "deaf"] as const) {
    const handle = await s.sluice.enqueue(job, input);
    await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
      code: "task_failed",
    });
    expect(await handle.status()).toMatchObject({
      state: "failed",
      attempt: 2,
      outcome: { code: "timeout" },
    });
  }
  expect(reasons).toEqual(["timeout", "timeout"]);
  expect(attempts).toEqual([1, 2, 1, 2]);
  await until("the permit to come back", () => worker.status().permitsInUse === 0);
  expect(worker.status()).toMatchObject({ inFlight: 0, abandoned: 2 });
  expect(await violations(s.sql)).toEqual([]);
});

test.each(["extend", "extendLease"] as const)("%s moves the timeout", async (name) => {
  const s = await scene();
  const job = task("job", { timeoutMs: 100, retry: once });
  await s.worker({
    handlers: [
      job.handle(async (_, ctx) => {
        ctx[name](20_000.4);
        await new Promise((resolve) => setTimeout(resolve, 300));
        return ctx.signal.aborted;
      }),
    ],
  });
  expect(await (await s.sluice.enqueue(job)).result({ timeoutMs: 10_000 })).toBe(false);
});

test("a handler that blocks the event loop past its lease completes nothing, and its task runs again", async () => {
  const s = await scene();
  const leaseMs = 1_000;
  const runs: { attempt: number; claim: string; aborted: boolean }[] = [];
  const job = task("job", { concurrency: 1 });
  const worker = await s.worker({
    leaseMs,
    handlers: [
      job.handle((_, ctx) => {
        const first = runs.length === 0;
        runs.push({ attempt: ctx.attempt, claim: ctx.claim, aborted: ctx.signal.aborted });
        for (const until = performance.now() + (first ? leaseMs * 1.5 : 0); performance.now() < until;);
        return runs.length;
      }),
    ],
  });
  const handle = await s.sluice.enqueue(job);
  expect(await handle.result({ timeoutMs: 10_000 })).toBe(2);
  expect(runs.map(({ attempt, aborted }) => [attempt, aborted])).toEqual([
    [1, false],
    [1, false],
  ]);
  expect(runs[0]!.claim).not.toBe(runs[1]!.claim);
  await until("the permits to come back", () => worker.status().permitsInUse === 0);
  expect(await violations(s.sql)).toEqual([]);
});

test("no handler starts under a claim whose lease ran out while the event loop was blocked", async () => {
  const s = await scene();
  const leaseMs = 1_000;
  const tokenOf = (ctx: { claim: string }): string => ctx.claim.split("-")[1]!;
  const starts: string[] = [];
  let blocked: string | null = null;
  const job = task("job", { input: type<number>() });
  await s.sluice.enqueueMany(
    job,
    Array.from({ length: 20 }, (_, n) => n),
  );
  await s.worker({
    leaseMs,
    handlers: [
      job.handle((_, ctx) => {
        starts.push(tokenOf(ctx));
        // The first of a claim of several: those beside it would start next, in the same turn of the loop.
        if (blocked !== null || starts.length !== 2) return;
        blocked = tokenOf(ctx);
        for (const until = performance.now() + leaseMs * 1.5; performance.now() < until;);
      }),
    ],
  });
  await ended(s, 20);
  expect(starts.filter((token) => token === blocked)).toHaveLength(1);
  expect(await violations(s.sql)).toEqual([]);
});

test("ctx.claim differs between all executions, also of tasks that were claimed together", async () => {
  const s = await scene();
  const claims: string[] = [];
  const job = task("job", { input: type<number>(), retry: { attempts: 2, backoff: fixed(1) } });
  await s.sluice.enqueueMany(
    job,
    Array.from({ length: 30 }, (_, n) => n),
  );
  await s.worker({
    handlers: [
      job.handle((_, ctx) => {
        claims.push(ctx.claim);
        if (ctx.attempt === 1) throw new Error("once more");
      }),
    ],
  });
  await ended(s, 30);
  expect(claims).toHaveLength(60);
  expect(new Set(claims).size).toBe(60);
});

test("a late rejection of an abandoned handler has no effect", async () => {
  const s = await scene();
  const unhandled: unknown[] = [];
  const note = (e: unknown): void => void unhandled.push(e);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  const late = signal();
  const job = task("job", { timeoutMs: 50, retry: once });
  const worker = await s.worker({
    handlers: [
      job.handle(async () => {
        await late.promise;
        throw new Error("far too late");
      }),
    ],
  });
  const handle = await s.sluice.enqueue(job);
  await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
  expect(worker.status().abandoned).toBe(1);
  late.resolve();
  await until("it to come back", () => worker.status().abandoned === 0);
  expect(unhandled).toEqual([]);
  expect((await handle.status())?.outcome).toMatchObject({ code: "timeout" });
  await until("the permit to come back", () => worker.status().permitsInUse === 0);
  expect(worker.status().inFlight).toBe(0);
});

test("an input that no longer fits the schema fails only its task", async () => {
  const s = await scene();
  const written = task("job", { input: type<number>(), retry: once });
  const read = task("job", {
    retry: once,
    input: {
      "~standard": {
        version: 1 as const,
        vendor: "test",
        validate: (value: unknown) => (value === 1 ? { value: 1 } : { issues: [{ message: "must be 1" }] }),
      },
    },
  });
  const [bad, good] = [await s.sluice.enqueue(written, 2), await s.sluice.enqueue(written, 1)];
  await s.worker({ handlers: [read.handle((n) => n)] });
  await expect(bad.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
  expect(await good.result({ timeoutMs: 10_000 })).toBe(1);
});

test("a handler that snoozes or cancels after its timeout counts as failed", async () => {
  const s = await scene();
  const job = task("job", { input: type<"snooze" | "cancel">(), timeoutMs: 100, retry: once });
  await s.worker({
    handlers: [
      job.handle(async (what, ctx) => {
        await new Promise<void>((resolve) => ctx.signal.addEventListener("abort", () => resolve()));
        throw what === "snooze" ? snooze(60_000) : cancel("too late");
      }),
    ],
  });
  for (const what of ["snooze", "cancel"] as const) {
    const handle = await s.sluice.enqueue(job, what);
    await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
      code: "task_failed",
    });
    expect((await handle.status())!.outcome).toMatchObject({ code: "timeout" });
  }
});
