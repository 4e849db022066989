import { setImmediate as turn } from "node:timers/promises";
import { expect, onTestFinished, test } from "vitest";
import { cancel, fixed, task, type, type SluiceError, type TaskContext } from "../../src/index.js";
import { issueClaim } from "../../src/core/claim.js";
import { silentLogger } from "../../src/core/ports.js";
import { ExecutionContext } from "../../src/worker/context.js";
import { Execution, type AnyHandler } from "../../src/worker/execution.js";
import { insertAll, type InsertTask } from "../../src/worker/pending.js";
import { Session } from "../../src/worker/session.js";
import { scene, signal, until } from "../flow/scene.js";

/** Rejections of promises that a handler did not await. */
function unhandledRejections(): unknown[] {
  const seen: unknown[] = [];
  const note = (e: unknown): void => void seen.push(e);
  process.on("unhandledRejection", note);
  onTestFinished(() => void process.off("unhandledRejection", note));
  return seen;
}

const child = task("child", { input: type<unknown>() });
const twice = { attempts: 2, backoff: fixed(1) };
const BAD = "\0";

/** Runs one handler to the end of its task. */
async function play(handle: (ctx: TaskContext) => unknown) {
  const s = await scene({ logger: silentLogger });
  await s.sql.query("create table effect (what text)");
  const unhandled = unhandledRejections();
  const attempts: number[] = [];
  const parent = task("parent", { retry: twice, output: type<unknown>() });
  const worker = await s.worker({
    handlers: [
      parent.handle((_, ctx) => {
        attempts.push(ctx.attempt);
        return handle(ctx);
      }),
    ],
  });
  const handle1 = await s.sluice.enqueue(parent);
  const result: unknown = await handle1
    .result({ timeoutMs: 10_000 })
    .catch((e: SluiceError) => ({ code: e.code, ...e.details }));
  await until("the permit to come back", () => worker.status().permitsInUse === 0);
  await turn();
  expect(unhandled).toEqual([]);
  const { rows } = await s.sql.query("select input from sluice.task where id <> $1", [handle1.id]);
  const effects = await s.sql.query<{ what: string }>("select what from effect");
  const children = rows.map(({ input }: { input: unknown }) => input);
  return { result, attempts, children, effects: effects.rows.map(({ what }) => what) };
}

test("an enqueue that its handler does not await exists after the execution has completed", async () => {
  const { result, children } = await play((ctx) => {
    void ctx.enqueue(child, "c");
    return "done";
  });
  expect([result, children]).toEqual(["done", ["c"]]);
});

test.for([
  ["at once", () => {}],
  // Long enough for the call to have failed before the handler returns.
  ["and the handler goes on for a while", () => turn().then(() => turn())],
] as const)("a refused enqueue that the handler does not await fails the execution, %s", async ([, then]) => {
  const { result, attempts, children } = await play(async (ctx) => {
    void ctx.enqueue(child, ctx.attempt === 1 ? BAD : "good");
    await then();
    return "done";
  });
  expect([result, attempts, children]).toEqual(["done", [1, 2], ["good"]]);
});

test("a refused enqueue whose error the handler catches does not fail the execution", async () => {
  const { result, attempts } = await play(async (ctx) => {
    const refused = ctx.enqueue(child, BAD);
    await turn();
    return refused.catch((e: { code: string }) => e.code);
  });
  expect([result, attempts]).toEqual(["input_not_storable", [1]]);
});

test("a transaction that its handler does not await completes the task, with its own result", async () => {
  const { result, attempts, effects } = await play((ctx) => {
    void ctx.transaction(async (tx) => {
      await tx.query("insert into effect values ('one')");
      return "of the transaction";
    });
    return "of the handler";
  });
  expect([result, attempts, effects]).toEqual(["of the transaction", [1], ["one"]]);
});

test("a failed transaction that the handler does not await fails the execution", async () => {
  const { result, attempts, effects } = await play((ctx) => {
    void ctx.transaction(async (tx) => {
      await tx.query("insert into effect values ($1)", [`attempt ${ctx.attempt}`]);
      if (ctx.attempt === 1) throw new Error("not this time");
      return "second";
    });
  });
  expect([result, attempts, effects]).toEqual(["second", [1, 2], ["attempt 2"]]);
});

test("a handler that throws beside its transaction fails only if the transaction does not commit", async () => {
  const go = signal();
  const committed = await play((ctx) => {
    void ctx.transaction(async () => {
      await go.promise;
      return "committed";
    });
    go.resolve();
    throw new Error("beside it");
  });
  expect([committed.result, committed.attempts]).toEqual(["committed", [1]]);
  const both = await play((ctx) => {
    void ctx.transaction(() => Promise.reject(new Error("inside it")));
    throw new Error("beside it");
  });
  expect(both).toMatchObject({ result: { error: { message: "beside it" } }, attempts: [1, 2] });
});

test("a transaction commits with the enqueues that it does not await, or not at all", async () => {
  const { result, attempts, children, effects } = await play((ctx) =>
    ctx.transaction(async (tx) => {
      void ctx.enqueue(child, ctx.attempt === 1 ? BAD : "good");
      await tx.query("insert into effect values ($1)", [`attempt ${ctx.attempt}`]);
      return "done";
    }),
  );
  expect([result, attempts]).toEqual(["done", [1, 2]]);
  expect([children, effects]).toEqual([["good"], ["attempt 2"]]);
});

test("a returned cancel() or snooze() works like a thrown one, also in a transaction", async () => {
  const plain = await play(() => cancel("enough"));
  expect(plain).toMatchObject({
    result: { code: "task_cancelled", reason: "enough" },
    attempts: [1],
  });
  const inside = await play((ctx) =>
    ctx.transaction(async (tx) => {
      await tx.query("insert into effect values ('undone')");
      return cancel("inside");
    }),
  );
  expect(inside).toMatchObject({
    result: { code: "task_cancelled", reason: "inside" },
    attempts: [1],
    effects: [],
  });
});

/** A context on a services that is made up. */
function context(prepare: () => Promise<InsertTask>) {
  const late: unknown[] = [];
  const claimed = { claim: issueClaim("7", "70"), stream: 1, attempt: 2, input: null };
  const handler = task("t", { queue: "q" }).handle(() => {}) as unknown as AnyHandler;
  const session = new Session("1", Number.POSITIVE_INFINITY);
  const execution = new Execution(
    { ...claimed, inputLength: 0, holds: 0, trace: null, nonce: "1" },
    handler,
    session,
    0,
  );
  const commit = signal();
  const ctx = new ExecutionContext(execution, {
    tracing: true,
    log: silentLogger,
    now: () => 100,
    prepare,
    transaction: async (_, pending, fn) => {
      const tx = { query: async () => ({ rows: [] }) };
      const result = await fn(tx);
      await insertAll(pending, tx);
      await commit.promise;
      execution.finish();
      return result;
    },
    progress: () => {},
    map: () => Promise.reject(new Error("no maps here")),
    late: (_, e) => void late.push((e as { code: string }).code),
  });
  return { ctx, execution, commit, late };
}

test("an enqueue that is too late for its completion is refused, not lost", async () => {
  const { ctx, commit } = context(() => Promise.resolve(() => Promise.resolve({ id: "8", existed: false })));
  const done = ctx.transaction(() => Promise.resolve("done"));
  await turn();
  await expect(ctx.enqueue(child, "c")).rejects.toMatchObject({ code: "not_claimed" });
  commit.resolve();
  expect(await done).toBe("done");
});

test("a call whose failure the handler catches later does not fail the execution", async () => {
  const { result, attempts } = await play((ctx) => {
    void ctx.enqueue(child, BAD).catch(() => {});
    return "done";
  });
  expect([result, attempts]).toEqual(["done", [1]]);
});

test("a call that fails after its task has ended is logged, and does not end the process", async () => {
  const unhandled = unhandledRejections();
  const { ctx, execution, late } = context(() => Promise.resolve(() => Promise.resolve({ id: "8", existed: false })));
  execution.finish();
  void ctx.enqueue(child, "c");
  await expect(ctx.enqueue(child, "heard")).rejects.toMatchObject({ code: "not_claimed" });
  await until("it to be told", () => late.length > 0);
  expect([late, unhandled]).toEqual([["not_claimed"], []]);
});

test("functions of a context can be destructured, and a context prints its fields", async () => {
  const { ctx, execution, commit } = context(() => Promise.resolve(() => Promise.resolve({ id: "8", existed: false })));
  const { enqueue, transaction, extend } = ctx as TaskContext;
  extend(50);
  await enqueue(child, "c");
  commit.resolve();
  expect(await transaction(() => Promise.resolve("done"))).toBe("done");
  expect(execution.deadlineMs).toBe(150);
  const { inspect } = await import("node:util");
  expect(inspect(ctx)).toMatch(/^TaskContext \{\s+id: '7',\s+type: 't',\s+queue: 'q',\s+attempt: 2,/);
});
