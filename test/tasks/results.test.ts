import { afterAll, beforeAll, describe, expect, expectTypeOf, test } from "vitest";
import { cancel, fixed, snooze, task, type, type SluiceError } from "../../src/index.js";
import { openHouse, type House } from "../client/house.js";
import { hostile, loneHigh, nested, nul } from "../core/caught.js";

const retry = { attempts: 1 };
// Values that handlers return or throw. They cannot be sent as JSON.
const things: unknown[] = [];
const returns = task("returns", { input: type<number>(), retry });
const throws = task("throws", { input: type<number>(), retry });
let house: House;
beforeAll(async () => {
  house = await openHouse({ resultBytesMax: 100_000 });
  await house.work([
    returns.handle((at) => things[at]),
    throws.handle((at) => {
      throw things[at];
    }),
  ]);
});
afterAll(() => house.close());

async function returned(thing: unknown): Promise<unknown> {
  const handle = await house.sluice.enqueue(returns, things.push(thing) - 1);
  return handle.result({ timeoutMs: 10_000 });
}

interface Thrown {
  readonly name: string;
  readonly message: string;
  readonly code?: string;
}

async function thrown(thing: unknown): Promise<Thrown> {
  const handle = await house.sluice.enqueue(throws, things.push(thing) - 1);
  const failure = await handle.result({ timeoutMs: 10_000 }).catch((e: unknown) => e);
  expect(failure).toMatchObject({ name: "SluiceError", code: "task_failed" });
  const { details } = failure as SluiceError;
  expect(details).toMatchObject({ id: handle.id, attempt: 1 });
  return details!["error"] as Thrown;
}

describe("a returned value", () => {
  const circle: Record<string, unknown> = { name: "round" };
  circle["self"] = circle;

  test.each<[string, unknown, unknown]>([
    ["a NUL", nul, "a\ufffdb"],
    ["a NUL in a key", { [nul]: 1 }, { "a\ufffdb": 1 }],
    ["a lone surrogate", [loneHigh], ["a\ufffdb"]],
    ["a circle", circle, { name: "round", self: "[circular]" }],
    ["a BigInt", { n: 12345678901234567890n }, { n: "12345678901234567890" }],
    ["a function", () => 1, "[function]"],
    ["a symbol", Symbol("s"), "[symbol]"],
    ["nothing", undefined, null],
    ["null", null, null],
    ["a Date", new Date(0), "1970-01-01T00:00:00.000Z"],
    ["a Map", new Map([[1, 2]]), {}],
    ["an object that throws at every touch", [hostile()], ["[unserialisable]"]],
    ["our separators", "\u001e\u001f", "\u001e\u001f"],
    ["__proto__", JSON.parse('{"__proto__": 1}'), JSON.parse('{"__proto__": 1}')],
  ])("a returned value is stored: %s", async (_, thing, stored) => expect(await returned(thing)).toEqual(stored));

  test("a returned value nested more than 1,000 levels deep is cut", async () => {
    expect(await returned(nested(1000))).toEqual(nested(1000));
    const cut = JSON.stringify(await returned(nested(50_000)));
    expect(cut).toContain("[nested too deep]");
  });

  test("a returned value that is too large is stored as a note with its size and its start", async () => {
    expect(await returned("x".repeat(99_998))).toHaveLength(99_998);
    expect(await returned("x".repeat(10_000_000))).toMatchObject({
      truncated: true,
      bytes: 10_000_002,
      preview: expect.stringMatching(/^"xxx.*…$/),
    });
  });
});

describe("a thrown value", () => {
  const circle: Record<string, unknown> = {};
  circle["self"] = circle;

  test.each<[string, unknown, Partial<Thrown>]>([
    ["an Error", new TypeError("wrong"), { name: "TypeError", message: "wrong" }],
    ["an Error with a code", Object.assign(new Error("gone"), { code: "E5" }), { code: "E5" }],
    ["a NUL and half a pair in the message", new Error(nul + loneHigh), { message: "a\ufffdba\ufffdb" }],
    ["text", "just text", { name: "NonError", message: "just text" }],
    ["a number", 42, { name: "NonError", message: "42" }],
    ["undefined", undefined, { name: "NonError", message: "undefined" }],
    ["null", null, { name: "NonError", message: "null" }],
    ["a symbol", Symbol("s"), { name: "NonError" }],
    ["a circular object", circle, { name: "NonError", message: '{"self":"[circular]"}' }],
    ["an object that throws at every touch", hostile(), { name: "NonError" }],
    ["a promise", Promise.resolve(1), { name: "NonError" }],
    ["our separators", new Error("\u001e\u001f"), { message: "\u001e\u001f" }],
  ])("a thrown value is described: %s", async (_, thing, description) => {
    expect(await thrown(thing)).toMatchObject(description);
  });

  test("an error message of 10 MB is cut", async () => {
    const { message } = await thrown(new Error("x".repeat(10_000_000)));
    expect(message).toMatch(/^xxx/);
    expect(message.length).toBeLessThan(10_000);
  });
});

describe("outcomes besides success and failure", () => {
  const reasons = [undefined, "because", nul, loneHigh, "x".repeat(1_000_000), 5 as never];

  test("a task cancelled by its handler keeps a storable and bounded reason", async () => {
    for (const reason of reasons) {
      const handle = await house.sluice.enqueue(throws, things.push(cancel(reason)) - 1);
      const failure = await handle.result({ timeoutMs: 10_000 }).catch((e: unknown) => e);
      expect(failure).toMatchObject({ code: "task_cancelled", details: { id: handle.id } });
      expect(String(failure).length).toBeLessThan(2_000);
    }
  });

  test("a task cancelled by a client keeps a storable and bounded reason", async () => {
    for (const reason of reasons) {
      const handle = await house.sluice.enqueue(returns, 0, { delayMs: 60_000 });
      expect(await handle.cancel({ reason })).toBe("cancelled");
      const { outcome } = (await handle.status())!;
      expect(JSON.stringify(outcome).length).toBeLessThan(2_000);
      expect((outcome as { reason: unknown }).reason === null).toBe(reason === undefined);
    }
  });

  test("a snoozed task runs again without using an attempt", async () => {
    const attempts: number[] = [];
    const nap = task("nap", { retry });
    const worker = await house.work([
      nap.handle((_, ctx) => {
        if (attempts.push(ctx.attempt) < 3) throw snooze(1);
      }),
    ]);
    await (await house.sluice.enqueue(nap)).result({ timeoutMs: 10_000 });
    expect(attempts).toEqual([1, 1, 1]);
    await worker.stop();
  });

  test("snooze, cancel and failure in ctx.transaction have the same effect as outside", async () => {
    const attempts: number[] = [];
    const inside = task("inside", { input: type<string>(), retry });
    const worker = await house.work([
      inside.handle((how, ctx) =>
        ctx.transaction(async () => {
          if (how === "cancel") throw cancel("from within");
          if (how === "fail") throw new RangeError("from within");
          if (attempts.push(ctx.attempt) < 2) throw snooze(1);
          return "done";
        }),
      ),
    ]);
    const snoozed = await house.sluice.enqueue(inside, "snooze");
    expect(await snoozed.result({ timeoutMs: 10_000 })).toBe("done");
    expect(attempts).toEqual([1, 1]);
    const cancelled = await house.sluice.enqueue(inside, "cancel");
    await expect(cancelled.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
      code: "task_cancelled",
      details: { reason: "from within" },
    });
    const failed = await house.sluice.enqueue(inside, "fail");
    await expect(failed.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
      code: "task_failed",
      details: { error: { name: "RangeError", message: "from within" } },
    });
    await worker.stop();
  });
});

describe("a task handle", () => {
  const typed = task("typed", {
    input: type<{ n: number }>(),
    output: type<{ doubled: number }>(),
    retry: { attempts: 2, backoff: fixed(1) },
  });

  test("a handle returns the status, and the result with its type", async () => {
    const worker = await house.work([typed.handle(({ n }) => ({ doubled: n * 2 }))]);
    const before = Date.now();
    const handle = await house.sluice.enqueue(typed, { n: 4 }, { priority: 3 });
    const result = await handle.result({ timeoutMs: 10_000 });
    expectTypeOf(result).toEqualTypeOf<{ doubled: number }>();
    expect(result).toEqual({ doubled: 8 });
    const status = (await handle.status())!;
    expect(status).toEqual({
      id: handle.id,
      type: "typed",
      queue: "default",
      priority: 3,
      state: "succeeded",
      attempt: 1,
      attemptsMax: 2,
      createdAt: expect.any(Date),
      runAt: null,
      startedAt: expect.any(Date),
      finishedAt: expect.any(Date),
      outcome: { doubled: 8 },
      lastError: null,
      progress: null,
    });
    expect(status.createdAt.getTime()).toBeGreaterThan(before - 5_000);
    expect(await handle.cancel()).toBe("over");
    expect(await house.sluice.task(handle.id).result()).toEqual({ doubled: 8 });
    await worker.stop();
  });

  test("a handle waits no longer than its timeout", async () => {
    const handle = await house.sluice.enqueue(typed, { n: 1 }, { delayMs: 60_000 });
    await expect(handle.result({ timeoutMs: 20 })).rejects.toMatchObject({ code: "wait_timeout" });
    expect(await handle.cancel()).toBe("cancelled");
    await expect(handle.result()).rejects.toMatchObject({
      code: "task_cancelled",
      details: { reason: null },
    });
  });

  test("a failed task that is retried runs again from its first attempt", async () => {
    let broken = true;
    const flaky = task("flaky", { retry: { attempts: 2, backoff: fixed(1) } });
    const attempts: number[] = [];
    const worker = await house.work([
      flaky.handle((_, ctx) => {
        attempts.push(ctx.attempt);
        if (broken) throw new Error("not yet");
        return "at last";
      }),
    ]);
    const handle = await house.sluice.enqueue(flaky);
    await expect(handle.result({ timeoutMs: 10_000 })).rejects.toMatchObject({
      code: "task_failed",
      message: expect.stringContaining("not yet"),
    });
    broken = false;
    expect(await house.sluice.retry(handle.id)).toBe(true);
    expect(await handle.result({ timeoutMs: 10_000 })).toBe("at last");
    expect(attempts).toEqual([1, 2, 1]);
    expect(await house.sluice.retry(handle.id)).toBe(false);
    await worker.stop();
  });

  test("a result without history is delivered to a waiting caller, and not to a later one", async () => {
    const forgetful = await openHouse({ history: { succeededMs: 0 } });
    const brief = task("brief");
    let go: () => void = () => {};
    const gate = new Promise<void>((resolve) => (go = resolve));
    const worker = await forgetful.work([brief.handle(() => gate.then(() => "done"))]);
    const watched = await forgetful.sluice.enqueue(brief);
    const unwatched = await forgetful.sluice.enqueue(brief);
    const waiting = watched.result({ timeoutMs: 10_000 });
    await expect.poll(() => forgetful.sql("select id from sluice.awaited")).toHaveLength(1);
    go();
    expect(await waiting).toBe("done");
    await worker.stop();
    await expect(unwatched.result({ timeoutMs: 1_000 })).rejects.toMatchObject({
      code: "result_not_kept",
    });
    await forgetful.close();
  });
});

describe("an order key that blocks", () => {
  const strict = task("strict", {
    input: type<string>(),
    order: { key: () => "one", scope: "strict", onFailure: "block" },
    retry,
  });

  test("an order key with onFailure: block waits for a retry or an unblock after a final failure", async () => {
    let broken = true;
    const ran: string[] = [];
    const worker = await house.work([
      strict.handle((text) => {
        ran.push(text);
        if (broken) throw new Error("broken");
      }),
    ]);
    const [a, b] = [await house.sluice.enqueue(strict, "a"), await house.sluice.enqueue(strict, "b")];
    await expect(a.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
    expect(await b.status()).toMatchObject({ state: "waiting" });
    expect(await house.sluice.unblock(b.id)).toBe(false);
    expect(await house.sluice.retry(a.id)).toBe(true);
    await expect(a.result({ timeoutMs: 10_000 })).rejects.toMatchObject({ code: "task_failed" });
    expect(await b.status()).toMatchObject({ state: "waiting" });
    broken = false;
    expect(await house.sluice.unblock(a.id)).toBe(true);
    await b.result({ timeoutMs: 10_000 });
    expect(ran).toEqual(["a", "a", "b"]);
    expect(await house.sluice.unblock(a.id)).toBe(false);
    await worker.stop();
  });
});

test("a paused queue starts no task until it is resumed", async () => {
  const parked = task("parked", { queue: "parking" });
  const worker = await house.work([parked.handle(() => "went")]);
  await house.sluice.pause("parking");
  const handle = await house.sluice.enqueue(parked);
  await expect(handle.result({ timeoutMs: 300 })).rejects.toMatchObject({ code: "wait_timeout" });
  expect(await handle.status()).toMatchObject({ state: "ready", attempt: 0 });
  await house.sluice.resume("parking");
  expect(await handle.result({ timeoutMs: 10_000 })).toBe("went");
  await worker.stop();
});

test("counts() returns the number of tasks in each state", async () => {
  const own = await openHouse();
  const counted = task("counted", { input: type<string>(), order: (key) => key });
  await own.sluice.enqueueMany(counted, ["a", "a", "b"]);
  await own.sluice.enqueueMany(counted, ["c"], { delayMs: 60_000 });
  const gone = await own.sluice.enqueue(counted, "d");
  await gone.cancel();
  await own.sluice.enqueue(task("free"));
  expect(await own.sluice.counts()).toEqual({
    scheduled: 1,
    waiting: 3,
    ready: 1,
    running: 0,
    succeeded: 0,
    failed: 0,
    cancelled: 1,
  });
  await own.close();
});
