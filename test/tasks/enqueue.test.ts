import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { isSluiceError, limit, task, type, type Queryable } from "../../src/index.js";
import { codeOf, openHouse, refused, type House } from "../client/house.js";
import { crowd } from "../support/crowd.js";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

describe("calls in a caller's transaction", () => {
  const echo = task("tx", { input: type<string>(), order: (key) => key });

  test("a task enqueued in a transaction exists if and only if the transaction commits", async () => {
    const tx = await house.begin();
    const handle = await house.sluice.enqueue(echo, "a", { tx });
    expect(await handle.status()).toBeNull();
    await tx.query("commit");
    expect(await handle.status()).toMatchObject({ id: handle.id, type: "tx" });

    await tx.query("begin");
    const gone = await house.sluice.enqueue(echo, "b", { tx });
    await tx.query("rollback");
    tx.release();
    expect(await gone.status()).toBeNull();
    expect(await gone.cancel()).toBe("unknown");
  });

  test("an enqueue in a transaction is one statement, through any object with query(text, params)", async () => {
    const tx = await house.begin();
    const seen: unknown[][] = [];
    const wrapped: Queryable = {
      async query(text, params) {
        seen.push([text, params]);
        return { rows: (await tx.query(text, params)).rows };
      },
    };
    await house.sluice.enqueue(echo, "warm", {});
    const handle = await house.sluice.enqueue(echo, "c", { tx: wrapped });
    expect(seen).toHaveLength(1);
    await tx.query("commit");
    tx.release();
    expect(await handle.status()).toMatchObject({ type: "tx" });
  });

  test("an enqueue in a transaction declares its type outside, so that the type survives a rollback", async () => {
    const tx = await house.begin();
    const first = task("declared-in-tx", {
      concurrency: 1,
      limits: [limit("in-tx", { total: 1 })],
    });
    await house.sluice.enqueue(first, undefined, { tx });
    await tx.query("rollback");
    tx.release();
    expect((await house.sluice.limits.get("in-tx")).total).toBe(1);
    expect((await house.sluice.enqueue(first)).id).toMatch(/^\d+$/);
  });

  test("an enqueue in an open transaction blocks no worker, no other enqueue and no change of a limit", async () => {
    const shared = limit("shared-open", { total: 5, perKey: 5 });
    const busy = task("open", {
      input: type<string>(),
      order: (key) => key,
      limits: [{ limit: shared, key: (key) => key }],
    });
    const elsewhere = task("elsewhere", { queue: "some-queue" });
    const worker = await house.work([busy.handle((key) => key), elsewhere.handle(() => {})]);
    const tx = await house.begin();
    const mine = await house.sluice.enqueue(busy, "same", { tx });
    const other = await house.sluice.enqueue(busy, "same");
    expect(await other.result({ timeoutMs: 10_000 })).toBe("same");
    await house.sluice.limits.set(shared, { total: 1, perKey: 1 });
    await house.sluice.pause("some-queue");
    await tx.query("commit");
    tx.release();
    expect(await mine.result({ timeoutMs: 10_000 })).toBe("same");
    await worker.stop();
  });

  test("an enqueue in a failed transaction reports the failed transaction, not an outage", async () => {
    const tx = await house.begin();
    await tx.query("select 1/0").catch(() => {});
    const failure = await house.sluice.enqueue(echo, "d", { tx }).catch((e: unknown) => e);
    expect(isSluiceError(failure)).toBe(false);
    expect(failure).toMatchObject({ code: "25P02" });
    await tx.query("rollback");
    tx.release();
  });

  test("a cancel in a transaction counts if and only if the transaction commits", async () => {
    const handle = await house.sluice.enqueue(echo, "e");
    const tx = await house.begin();
    expect(await handle.cancel({ tx })).toBe("cancelled");
    await tx.query("rollback");
    expect(await handle.status()).not.toMatchObject({ state: "cancelled" });
    await tx.query("begin");
    await handle.cancel({ tx, reason: "changed my mind" });
    await tx.query("commit");
    tx.release();
    expect(await handle.status()).toMatchObject({
      state: "cancelled",
      outcome: { reason: "changed my mind" },
    });
  });
});

describe("an idempotency key", () => {
  const once = task("once", { input: type<unknown>() });
  const other = task("other", { input: type<unknown>() });

  test("an idempotency key enqueues once, and later calls return the same task", async () => {
    const before = await house.tasks();
    const first = await house.sluice.enqueue(once, { a: 1 }, { idempotencyKey: "k1" });
    const again = await house.sluice.enqueue(once, { a: 1 }, { idempotencyKey: "k1", priority: 5 });
    expect([first.existed, again.existed, again.id]).toEqual([false, true, first.id]);
    expect(await house.tasks()).toBe(before + 1);
  });

  test("an idempotency key with another payload is refused, also within one list", async () => {
    await house.sluice.enqueue(once, 1, { idempotencyKey: "k2" });
    const idempotencyKey = "k2";
    await refused(house, "idempotency_conflict", () => house.sluice.enqueue(once, 2, { idempotencyKey }));
    await refused(house, "idempotency_conflict", () =>
      house.sluice.enqueueMany(once, [1, 2], { idempotencyKey: () => "k3" }),
    );
    expect((await house.sluice.enqueue(once, 1, { idempotencyKey })).existed).toBe(true);
    expect((await house.sluice.enqueue(once, 2, { idempotencyKey: "k3" })).existed).toBe(false);
  });

  test("an idempotency key belongs to its type", async () => {
    const a = await house.sluice.enqueue(once, 1, { idempotencyKey: "k4" });
    const b = await house.sluice.enqueue(other, 2, { idempotencyKey: "k4" });
    expect(b.existed).toBe(false);
    expect(b.id).not.toBe(a.id);
  });

  test("an idempotency key is released by a rollback", async () => {
    const tx = await house.begin();
    await house.sluice.enqueue(once, 1, { idempotencyKey: "k5", tx });
    await tx.query("rollback");
    tx.release();
    expect((await house.sluice.enqueue(once, 2, { idempotencyKey: "k5" })).existed).toBe(false);
  });

  test("an idempotency key in twenty concurrent calls creates one task", async () => {
    const all = await Promise.all(
      Array.from({ length: 20 }, () => house.sluice.enqueue(once, "x", { idempotencyKey: "k6" })),
    );
    expect(new Set(all.map((handle) => handle.id)).size).toBe(1);
    expect(all.filter((handle) => !handle.existed)).toHaveLength(1);
  });

  test("an idempotency key expires after idempotencyMs", async () => {
    const short = await openHouse({ idempotencyMs: 0 });
    const first = await short.sluice.enqueue(once, 1, { idempotencyKey: "k" });
    const second = await short.sluice.enqueue(once, 2, { idempotencyKey: "k" });
    expect(second.existed).toBe(false);
    expect(second.id).not.toBe(first.id);
    await short.close();
  });
});

describe("a group at enqueue", () => {
  const grouped = task("grouped", { input: type<number>() });
  const totalOf = async (name: string) => (await house.sluice.limits.get(name)).total;

  test("a group is a limit with that name, and groupLimit sets its number only if none is set yet", async () => {
    await house.sluice.enqueue(grouped, 1, { group: "g1", groupLimit: 2 });
    expect(await totalOf("g1")).toBe(2);
    await house.sluice.enqueue(grouped, 2, { group: "g1", groupLimit: 9 });
    expect(await totalOf("g1")).toBe(2);
  });

  test("a group without a number is unlimited until a call gives one", async () => {
    await house.sluice.enqueue(grouped, 1, { group: "g2" });
    expect(await totalOf("g2")).toBeNull();
    await house.sluice.enqueue(grouped, 2, { group: "g2", groupLimit: 3 });
    expect(await totalOf("g2")).toBe(3);
    await house.sluice.enqueue(grouped, 3, { group: "g2", groupLimit: 7 });
    expect(await totalOf("g2")).toBe(3);
  });

  test("a group keeps a number set in code or by an operator", async () => {
    await house.sluice.sync([limit("g3", { total: 4 }), limit("g4", { total: null })]);
    await house.sluice.limits.set("g4", { total: null });
    await house.sluice.enqueue(grouped, 1, { group: "g3", groupLimit: 9 });
    await house.sluice.enqueue(grouped, 1, { group: "g4", groupLimit: 9 });
    expect(await totalOf("g3")).toBe(4);
    expect(await totalOf("g4")).toBeNull();
  });

  test("a group that names a limit per key is refused, because it has no key", async () => {
    await house.sluice.sync([limit("keyed", { perKey: 1 }), limit("both", { perKey: 1, total: 1 })]);
    await refused(house, "limit_shape", () => house.sluice.enqueue(grouped, 1, { group: "keyed" }));
    await refused(house, "limit_shape", () => house.sluice.enqueue(grouped, 1, { group: "both" }));
  });

  test("a group reaches its number of concurrent tasks and never exceeds it", async () => {
    const slow = task("slow-group", { input: type<number>() });
    const group = crowd(3);
    const worker = await house.work([slow.handle(() => group.pass(() => setTimeout(10)))]);
    const many = await house.sluice.enqueueMany(slow, Array(30).keys(), {
      group: "g5",
      groupLimit: 3,
    });
    await Promise.all(many.ids().map((id) => house.sluice.task(id).result({ timeoutMs: 10_000 })));
    expect(group.peak).toBe(3);
    await worker.stop();
  });

  test("a group that the task passes anyway takes one slot, not two", async () => {
    const mail = limit("mail-group", { total: 1 });
    const listed = task("listed-group", { limits: [mail] });
    const own = task("own-group", { concurrency: 1 });
    const worker = await house.work([listed.handle(() => 1), own.handle(() => 1)]);
    const a = await house.sluice.enqueue(listed, undefined, { group: "mail-group" });
    const b = await house.sluice.enqueue(own, undefined, { group: "own-group", groupLimit: 1 });
    expect(await a.result({ timeoutMs: 10_000 })).toBe(1);
    expect(await b.result({ timeoutMs: 10_000 })).toBe(1);
    await worker.stop();
    for (const name of ["mail-group", "own-group"]) {
      expect(await house.sluice.limits.get(name)).toMatchObject({ total: 1, used: 0 });
    }
    expect(await house.sql("select * from sluice.violation")).toEqual([]);
  });
});

describe("limits at enqueue", () => {
  test("a limit with two shapes under one name is refused", async () => {
    await house.sluice.enqueue(task("s1", { limits: [limit("shape", { total: 5 })] }));
    const keyed = task("s2", { limits: [limit("shape", { perKey: 1 }).for("a")] });
    await refused(house, "limit_shape", () => house.sluice.enqueue(keyed));
    const both = task("s3", { limits: () => [limit("shape", { perKey: 1, total: 5 }).for("a")] });
    await refused(house, "limit_shape", () => house.sluice.enqueue(both));
  });

  test("a concurrency of a task named like a limit per key is refused", async () => {
    await house.sluice.sync([limit("s4", { perKey: 1 })]);
    await refused(house, "limit_shape", () => house.sluice.enqueue(task("s4", { concurrency: 1 })));
  });

  test("a limits function that throws or returns an invalid value refuses the input", async () => {
    const broken = (limits: () => unknown) => task("broken", { limits: limits as never });
    const throwing = broken(() => JSON.parse("nonsense") as unknown);
    await refused(house, "input_invalid", () => house.sluice.enqueue(throwing));
    const mail = limit("mail", { total: 1 });
    for (const nonsense of [null, "mail", [5], {}, Array(9).fill(mail), [undefined], mail]) {
      await refused(house, "invalid_option", () => house.sluice.enqueue(broken(() => nonsense)));
    }
    await refused(house, "duplicate_limit", () => house.sluice.enqueue(broken(() => [mail, mail])));
    const order = task("broken-order", { order: () => JSON.parse("nonsense") as string });
    await refused(house, "input_invalid", () => house.sluice.enqueue(order));
  });
});

describe("time and priority", () => {
  test("a delayed task is scheduled, then runs", async () => {
    const late = task("late");
    const worker = await house.work([late.handle((_, ctx) => ctx.attempt)]);
    const handle = await house.sluice.enqueue(late, undefined, { delayMs: 80 });
    const at = await house.sluice.enqueue(late, undefined, { runAt: new Date(Date.now() + 80) });
    const far = await house.sluice.enqueue(late, undefined, { delayMs: 3_600_000 });
    expect(await far.status()).toMatchObject({ state: "scheduled", attempt: 0 });
    expect(await handle.result({ timeoutMs: 10_000 })).toBe(1);
    expect(await at.result({ timeoutMs: 10_000 })).toBe(1);
    const { createdAt, startedAt } = (await handle.status())!;
    expect(startedAt!.getTime() - createdAt.getTime()).toBeGreaterThanOrEqual(70);
    await worker.stop();
  });

  test("a delay counts by the clock of the database, not of the client", async () => {
    const clock = vi.spyOn(Date, "now").mockReturnValue(Date.now() - 3_600_000);
    const handle = await house.sluice.enqueue(task("slow-clock"), undefined, { delayMs: 60_000 });
    clock.mockRestore();
    const { state, createdAt, runAt } = (await handle.status())!;
    expect(state).toBe("scheduled");
    expect(runAt!.getTime() - createdAt.getTime()).toBeGreaterThan(59_000);
  });

  test("a time in the past means immediately", async () => {
    const handle = await house.sluice.enqueue(task("past"), undefined, { runAt: new Date(0) });
    expect(await handle.status()).toMatchObject({ state: "ready" });
  });

  test("tasks with a higher priority run first, and equal ones by age", async () => {
    const ranked = task("ranked", { input: type<number>(), priority: 2 });
    for (const priority of [undefined, 1, 3, -5, 3]) {
      await house.sluice.enqueue(ranked, priority ?? 2, { priority });
    }
    const ran: number[] = [];
    const worker = await house.work([ranked.handle((n) => void ran.push(n))], {
      maxConcurrentTasks: 1,
    });
    await expect.poll(() => ran).toEqual([3, 3, 2, 1, -5]);
    await worker.stop();
  });
});

test("a worker without handlers, or with two handlers of one type, is refused", async () => {
  expect(await codeOf(() => house.sluice.worker({ handlers: [] }))).toBe("invalid_option");
  const twice = task("twice").handle(() => 1);
  expect(await codeOf(() => house.sluice.worker({ handlers: [twice, twice] }))).toBe("invalid_option");
});

test.each(["40001", "40P01", "55P03", "57014"])(
  "SQLSTATE %s is reported as database_busy, with the advice to try again",
  async (code) => {
    const busy = Object.assign(new Error("busy"), { code });
    const tx: Queryable = { query: () => Promise.reject(busy) };
    await expect(house.sluice.enqueue(task("busy"), undefined, { tx })).rejects.toMatchObject({
      code: "database_busy",
      message: expect.stringContaining("try again") as string,
      cause: busy,
    });
  },
);
