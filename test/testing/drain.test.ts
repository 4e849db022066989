import { expect, test } from "vitest";
import { cancel, fixed, limit, snooze, task, type } from "../../src/index.js";
import { kit, violations } from "./kit.js";

test("a drain runs tasks of all types one at a time, by priority and then age", async () => {
  const seen: string[] = [];
  let running = 0;
  const run = async (name: string): Promise<void> => {
    expect(++running).toBe(1);
    await new Promise((resolve) => setImmediate(resolve));
    seen.push(name);
    running--;
  };
  const a = task("a", { input: type<string>() });
  const b = task("b", { input: type<string>(), priority: 5 });
  const t = await kit({ handlers: [a.handle(run), b.handle(run)] });
  await t.sluice.enqueue(a, "a1");
  await t.sluice.enqueue(b, "b1");
  await t.sluice.enqueue(a, "a2", { priority: 9 });
  await t.sluice.enqueue(b, "b2");
  await t.sluice.enqueue(a, "a3");
  const { ran, nextDueMs } = await t.drain();
  expect(seen).toEqual(["a2", "b1", "b2", "a1", "a3"]);
  expect(ran.map(({ type, attempt, outcome }) => [type, attempt, outcome])).toEqual(
    ["a", "b", "b", "a", "a"].map((type) => [type, 1, "succeeded"]),
  );
  expect(nextDueMs).toBe(null);
  expect((await t.drain()).ran).toEqual([]);
});

test("a drain also runs tasks that its handlers enqueue, by ctx or by the client", async () => {
  const seen: string[] = [];
  const child = task("child", { input: type<string>() });
  const parent = task("parent");
  const t = await kit({
    handlers: [
      child.handle((name) => void seen.push(name)),
      parent.handle(async (_, ctx) => {
        await ctx.enqueue(child, "by ctx");
        await t.sluice.enqueue(child, "by client");
        seen.push("parent");
      }),
    ],
  });
  await t.sluice.enqueue(parent);
  await t.drain();
  expect(seen).toEqual(["parent", "by client", "by ctx"]);
});

test("a drain waits for calls on ctx that a handler did not await", async () => {
  const child = task("child", { input: type<string>() });
  const parent = task("parent", { input: type<string>(), retry: { attempts: 1 } });
  const t = await kit({
    handlers: [
      child.handle((name) => name),
      parent.handle((how, ctx) => {
        if (how === "transaction") void ctx.transaction(() => Promise.resolve("committed"));
        else void ctx.enqueue(child, how === "bad" ? "\0" : how);
      }),
    ],
  });
  const handle = await t.sluice.enqueue(parent, "transaction");
  for (const how of ["c", "bad"]) await t.sluice.enqueue(parent, how);
  const { ran } = await t.drain();
  expect(ran.map(({ type, outcome }) => [type, outcome])).toEqual([
    ["parent", "succeeded"],
    ["parent", "succeeded"],
    ["parent", "failed"],
    ["child", "succeeded"],
  ]);
  expect(ran[2]?.error).toMatchObject({ code: "input_not_storable" });
  expect(await handle.result()).toBe("committed");
});

test("a drain reports every outcome with the thrown error", async () => {
  const boom = new Error("boom");
  const outcomes: Record<string, () => unknown> = {
    succeed: () => 7,
    retry: () => {
      throw boom;
    },
    cancel: () => {
      throw cancel("no need");
    },
    snooze: () => {
      throw snooze(1_000);
    },
  };
  const act = task("act", { input: type<string>(), retry: { attempts: 2, backoff: fixed(1_000) } });
  const t = await kit({ handlers: [act.handle((how) => outcomes[how]!())] });
  for (const how of Object.keys(outcomes)) await t.sluice.enqueue(act, how);
  const { ran, nextDueMs } = await t.drain();
  expect(ran.map((r) => r.outcome)).toEqual(["succeeded", "retry", "cancelled", "snooze"]);
  expect(ran[1]!.error).toBe(boom);
  expect(nextDueMs).toBe(1_000);
  await t.clock.advance(1_000);
  const later = await t.drain();
  expect(later.ran.map((r) => [r.attempt, r.outcome])).toEqual([
    [2, "failed"],
    [1, "snooze"],
  ]);
});

test("a drain fails a task whose input no longer matches its schema and reports why", async () => {
  const old = task("t", { input: type<unknown>(), retry: { attempts: 1 } });
  const strict = task("t", {
    input: {
      "~standard": {
        version: 1,
        vendor: "test",
        validate: () => ({ issues: [{ message: "too old" }] }),
      },
    },
    retry: { attempts: 1 },
  });
  const t = await kit({ handlers: [strict.handle(() => {})] });
  await t.sluice.enqueue(old, 1);
  const { ran } = await t.drain();
  expect(ran).toMatchObject([{ outcome: "failed" }]);
  expect(JSON.stringify(ran[0]!.error)).toContain("too old");
});

test("a drain respects limits and order: tasks behind a full limit or a failed head do not run", async () => {
  const mails = limit("mails", { total: 1 });
  const seen: string[] = [];
  const mail = task("mail", {
    input: type<{ to: string; n: number }>(),
    order: { key: (m) => m.to, onFailure: "block" },
    limits: [mails],
    retry: { attempts: 1 },
  });
  const t = await kit({
    handlers: [
      mail.handle(({ to, n }) => {
        seen.push(`${to}${n}`);
        if (to === "b") throw new Error("bounced");
      }),
    ],
  });
  await t.sluice.enqueue(mail, { to: "a", n: 1 });
  await t.sluice.enqueue(mail, { to: "b", n: 1 });
  await t.sluice.enqueue(mail, { to: "a", n: 2 }, { priority: 9 });
  const second = await t.sluice.enqueue(mail, { to: "b", n: 2 });
  await t.sluice.limits.set("mails", { total: 0 });
  expect((await t.drain()).ran).toEqual([]);
  await t.sluice.limits.set("mails", { total: 1 });
  const { ran } = await t.drain();
  // Priority is ignored within a key: the end of a1 admits a2, which then precedes b1.
  expect(seen).toEqual(["a1", "a2", "b1"]);
  expect(ran.map((r) => r.outcome)).toEqual(["succeeded", "succeeded", "failed"]);
  expect((await second.status())?.state).toBe("waiting");
  await t.sluice.unblock(ran.find((r) => r.outcome === "failed")!.id);
  expect((await t.drain()).ran.map((r) => r.id)).toEqual([second.id]);
  expect(await violations(t)).toEqual([]);
});

test("two drains of the same work run it in the same order", async () => {
  const tenant = limit("tenant", { perKey: 2 });
  const once = async (): Promise<string[]> => {
    const seen: string[] = [];
    const types = Array.from({ length: 4 }, (_, i) =>
      task(`type-${i}`, {
        input: type<number>(),
        order: (n) => `key-${n % 3}`,
        limits: [{ limit: tenant, key: (n) => `tenant-${n % 2}` }],
        retry: { attempts: 2, backoff: fixed(0) },
      }),
    );
    const t = await kit({
      handlers: types.map((one) =>
        one.handle((n, ctx) => {
          seen.push(`${one.type} ${n} ${ctx.attempt}`);
          if (n % 5 === 0 && ctx.attempt === 1) throw new Error("once more");
        }),
      ),
    });
    for (let n = 0; n < 40; n++) await t.sluice.enqueue(types[(n * 7) % 4]!, n, { priority: n % 3 });
    const { ran } = await t.drain();
    expect(ran).toHaveLength(48);
    expect(await violations(t)).toEqual([]);
    return seen;
  };
  expect(await once()).toEqual(await once());
});

test("a drain fails, and leaves nothing running, if tasks enqueue each other forever", async () => {
  const again = task("again");
  const t = await kit({ handlers: [again.handle(async (_, ctx) => ctx.enqueue(again))] });
  await t.sluice.enqueue(again);
  await expect(t.drain({ executionsMax: 20 })).rejects.toMatchObject({
    code: "not_drained",
    message: expect.stringMatching(/20 tasks have run and there are more.*again 20/),
  });
  expect(await t.sluice.counts()).toMatchObject({ succeeded: 20, ready: 1, running: 0 });
});

test("a drain fails if a handler does not end, names it and hands its task back", async () => {
  const hang = task("hang");
  const t = await kit({ handlers: [hang.handle(() => new Promise(() => {}))] });
  const { id } = await t.sluice.enqueue(hang);
  await expect(t.drain({ handlerMsMax: 50 })).rejects.toMatchObject({
    code: "not_drained",
    message: expect.stringContaining(`the handler of hang (task ${id}) did not end within 50 ms`),
  });
  expect((await t.sluice.task(id).status())?.state).toBe("ready");
});

test("a drain waits for a handler that continues after its transaction", async () => {
  const seen: string[] = [];
  const pay = task("pay", { input: type<string>(), output: type<number>() });
  const t = await kit({
    handlers: [
      pay.handle(async (name, ctx) => {
        seen.push(`${name} begins`);
        const result = await ctx.transaction(async () => 7);
        // Longer than the start of the next task would take if the drain did not wait.
        if (name === "a") await new Promise((resolve) => setTimeout(resolve, 300));
        seen.push(`${name} ends`);
        return result;
      }),
    ],
  });
  const handle = await t.sluice.enqueue(pay, "a");
  await t.sluice.enqueue(pay, "b");
  expect((await t.drain()).ran).toMatchObject([{ outcome: "succeeded" }, { outcome: "succeeded" }]);
  expect(seen).toEqual(["a begins", "a ends", "b begins", "b ends"]);
  expect(await handle.result()).toBe(7);
});

test("a drain and the test kit refuse invalid options", async () => {
  const one = task("one");
  const t = await kit({ handlers: [one.handle(() => {})] });
  for (const options of [
    { faults: "crash" },
    { faults: [{ kind: "crash" }] },
    { runMax: 1 },
    { executionsMax: 0 },
    { handlerMsMax: "1" },
    null,
  ])
    await expect(t.drain(options as never)).rejects.toMatchObject({ code: "invalid_option" });
  const bare = await kit();
  await expect(bare.drain()).rejects.toMatchObject({ code: "invalid_option" });
  for (const options of [{ handler: [] }, { handlers: [{}] }, { now: "today" }, { url: "host" }])
    await expect(kit(options as never)).rejects.toMatchObject({ code: "invalid_option" });
  const twice = [one.handle(() => {}), one.handle(() => {})];
  await expect(kit({ handlers: twice })).rejects.toMatchObject({ code: "invalid_option" });
});

test("a concurrent second drain is refused, even inside a handler", async () => {
  const nested = task("nested", { retry: { attempts: 1 } });
  const t = await kit({ handlers: [nested.handle(async () => void (await t.drain()))] });
  await t.sluice.enqueue(nested);
  expect((await t.drain()).ran).toMatchObject([{ outcome: "failed", error: { code: "invalid_option" } }]);
});
