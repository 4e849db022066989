import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, expectTypeOf, test } from "vitest";
import {
  cancel,
  fixed,
  isOutcome,
  snooze,
  task,
  type,
  type Middleware,
  type Sluice,
  type TaskContext,
} from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { MiddlewareChain } from "../../src/worker/middleware.js";
import { scene } from "../flow/scene.js";
import { kit } from "../testing/kit.js";

const ctx = {} as TaskContext;

function chainOf(...list: Middleware[]): MiddlewareChain {
  const chain = new MiddlewareChain(silentLogger);
  for (const middleware of list) chain.use(middleware);
  return chain;
}

const caught = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => "none",
    (e: unknown) => e,
  );

describe("a chain of middleware", () => {
  test("the first in use is the outermost, and each sees the handler's result", async () => {
    const said: unknown[] = [];
    const named =
      (name: string): Middleware =>
      async (_, next) => {
        said.push(`${name} in`);
        said.push(`${name} ${String(await next())}`);
        return "another result";
      };
    expect(await chainOf(named("a"), named("b")).run(ctx, () => 42)).toBe(42);
    expect(said).toEqual(["a in", "b in", "b 42", "a 42"]);
  });

  test("the error of a handler stands, whatever its middleware catches or throws", async () => {
    const failure = new Error("of the handler");
    const handler = (): never => {
      throw failure;
    };
    const swallows: Middleware = (_, next) => next().catch(() => "fine");
    const wraps: Middleware = (_, next) =>
      next().catch((cause: unknown) => {
        throw new Error("wrapped", { cause });
      });
    const careless: Middleware = (_, next) => void next();
    for (const middleware of [swallows, wraps, careless])
      expect(await caught(chainOf(middleware).run(ctx, handler))).toBe(failure);
    expect(await caught(chainOf(wraps, swallows, careless).run(ctx, handler))).toBe(failure);
  });

  test("an error of a middleware fails an execution whose handler has succeeded, once the handler has ended", async () => {
    const broken = new Error("of the middleware");
    let ended = false;
    const early: Middleware = (_, next) => {
      void next();
      throw broken;
    };
    const handler = async (): Promise<void> => {
      await new Promise((resolve) => setTimeout(resolve, 20));
      ended = true;
    };
    expect(await caught(chainOf(early).run(ctx, handler))).toBe(broken);
    expect(ended).toBe(true);
  });

  test("a middleware that does not call next fails the execution, and a late call runs nothing", async () => {
    let runs = 0;
    let late: (() => Promise<unknown>) | undefined;
    const forgets: Middleware = (_, next) => void (late = next);
    const error = await caught(chainOf(forgets).run(ctx, () => runs++));
    expect(error).toMatchObject({ code: "invalid_option", message: expect.stringContaining("without calling next()") });
    expect(await caught(late!())).toMatchObject({ code: "invalid_option" });
    expect(runs).toBe(0);
  });

  test("a second call of next is refused and does not run the handler again", async () => {
    let runs = 0;
    const twice: Middleware = async (_, next) => {
      await next();
      await next();
    };
    expect(await caught(chainOf(twice).run(ctx, () => runs++))).toMatchObject({ code: "invalid_option" });
    expect(runs).toBe(1);
  });

  test("a removed middleware no longer runs, and one that was added twice is removed once", async () => {
    const chain = new MiddlewareChain(silentLogger);
    let calls = 0;
    const counts: Middleware = (_, next) => (calls++, next());
    const remove = chain.use(counts);
    chain.use(counts);
    remove();
    remove();
    await chain.run(ctx, () => {});
    expect(calls).toBe(1);
    expect(() => chain.use("no" as never)).toThrow(/middleware must be a function/);
  });
});

test("a middleware gives handlers a context, and sees every execution with its error", async () => {
  const s = await scene();
  const storage = new AsyncLocalStorage<{ task: string }>();
  const seen: [string, number, unknown][] = [];
  s.sluice.use((about, next) => storage.run({ task: about.id }, next));
  s.sluice.use(async (about, next) => {
    try {
      seen.push([about.type, about.attempt, await next()]);
    } catch (e) {
      seen.push([about.type, about.attempt, (e as Error).message]);
      throw e;
    }
  });
  const job = task("job", { output: type<string>(), retry: { attempts: 2, backoff: fixed(1) } });
  await s.worker({
    handlers: [
      job.handle(async (_, { attempt }) => {
        await new Promise((resolve) => setTimeout(resolve, 1));
        if (attempt === 1) throw new Error("not yet");
        return storage.getStore()!.task;
      }),
    ],
  });
  const handle = await s.sluice.enqueue(job);
  expect(await handle.result()).toBe(handle.id);
  expect(seen).toEqual([
    ["job", 1, "not yet"],
    ["job", 2, handle.id],
  ]);
});

test("a middleware surrounds a handler that ends in its transaction, and its context reaches no other handler", async () => {
  const s = await scene();
  const storage = new AsyncLocalStorage<string>();
  const found: (string | undefined)[] = [];
  const job = task("job", { input: type<string>() });
  s.sluice.use((about, next) => storage.run(about.id, next));
  await s.worker({
    maxConcurrentTasks: 1,
    handlers: [
      job.handle((_, about) => {
        found.push(storage.getStore());
        return about.transaction(async () => {});
      }),
    ],
  });
  const handles = [await s.sluice.enqueue(job, "a"), await s.sluice.enqueue(job, "b")];
  for (const handle of handles) await handle.result();
  expect(found).toEqual(handles.map(({ id }) => id));
});

test("an input that its schema refuses is seen by the middleware and fails as usual", async () => {
  const s = await scene();
  const codes: unknown[] = [];
  s.sluice.use((_, next) => next().catch((e: { code?: string }) => void codes.push(e.code)));
  const before = task("job", { input: type<unknown>(), retry: { attempts: 1 } });
  const picky = task("job", {
    input: {
      "~standard": { version: 1, vendor: "test", validate: () => ({ issues: [{ message: "never" }] }) },
    } as never,
    retry: { attempts: 1 },
  });
  const handle = await s.sluice.enqueue(before, 5);
  await s.worker({ handlers: [picky.handle(() => {})] });
  await expect(handle.result()).rejects.toMatchObject({ code: "task_failed" });
  expect(codes).toEqual(["input_invalid"]);
});

test("a middleware may end an execution with cancel or snooze before the handler runs", async () => {
  const t = await kit({ handlers: [task("job").handle(() => "ran")] });
  const ends: unknown[] = [snooze(1_000), cancel("frozen")];
  t.sluice.use((_, next) => {
    const end = ends.shift();
    if (end !== undefined) throw end;
    return next();
  });
  const handle = await t.sluice.enqueue(task("job"));
  expect((await t.drain()).ran).toMatchObject([{ outcome: "snooze" }]);
  await t.clock.advance(1_000);
  expect((await t.drain()).ran).toMatchObject([{ outcome: "cancelled" }]);
  expect((await handle.status())?.outcome).toEqual({ reason: "frozen" });
});

test("a drain runs middleware around its handlers, and a middleware that throws fails the attempt", async () => {
  const job = task("job", { retry: { attempts: 2, backoff: fixed(0) } });
  const t = await kit({ handlers: [job.handle(() => "done")] });
  const seen: unknown[] = [];
  const remove = t.sluice.use(async ({ attempt }, next) => {
    seen.push([attempt, await next()]);
    if (attempt === 1) throw new Error("no connection to the log");
  });
  await t.sluice.enqueue(job);
  const { ran } = await t.drain();
  expect(ran).toMatchObject([
    { outcome: "retry", error: { message: "no connection to the log" } },
    { outcome: "succeeded" },
  ]);
  expect(seen).toEqual([
    [1, "done"],
    [2, "done"],
  ]);
  remove();
  await t.sluice.enqueue(job);
  await t.drain();
  expect(seen).toHaveLength(2);
});

test("isOutcome tells deliberate outcomes, also the wait of a map, from failures", async () => {
  const s = await scene();
  const [parent, item] = [task("parent"), task("item", { input: type<number>() })];
  const kinds: unknown[] = [];
  s.sluice.use((about, next) =>
    next().catch((e: unknown) => void (about.type === "parent" && kinds.push(isOutcome(e)))),
  );
  await s.worker({
    handlers: [item.handle((n) => n), parent.handle((_, about) => about.map("items", [1, 2], item))],
  });
  expect(await (await s.sluice.enqueue(parent)).result()).toEqual([1, 2]);
  expect(kinds).toContain(true);
  expect(kinds).not.toContain(false);
  expect([snooze(1), cancel(), new Error("no"), undefined].map(isOutcome)).toEqual([true, true, false, false]);
});

test("a closed Sluice refuses middleware", async () => {
  const s = await scene();
  await s.sluice.close();
  expect(() => s.sluice.use((_, next) => next())).toThrow(expect.objectContaining({ code: "closed" }));
});

test("a middleware has the types of its arguments", () => {
  const use = (sluice: Sluice): unknown =>
    sluice.use(async (about, next) => {
      expectTypeOf(about).toEqualTypeOf<TaskContext>();
      expectTypeOf(await next()).toEqualTypeOf<unknown>();
    });
  expect(use).toBeTypeOf("function");
});
