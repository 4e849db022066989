import { setTimeout } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limit, Sluice, task, type, type TaskHandle } from "../../src/index.js";
import { crowd } from "../support/crowd.js";
import { codeOf, openHouse, refused, type House } from "./house.js";

let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

/** The numbers in force, and whether an operator has changed them. */
async function inForce(name: string) {
  const { total, perKey, overridden } = await house.sluice.limits.get(name);
  return { total, perKey, overridden };
}

async function idle(handle: TaskHandle): Promise<void> {
  await expect(handle.result({ timeoutMs: 200 })).rejects.toMatchObject({ code: "wait_timeout" });
}

describe("a declared limit", () => {
  test("a declared limit is inserted if absent, and only sync changes it", async () => {
    await house.sluice.enqueue(task("d1", { limits: [limit("d", { total: 5 })] }));
    expect(await inForce("d")).toEqual({ total: 5, perKey: undefined, overridden: false });
    // Another process, with another number in its code, during a rolling deploy.
    const other = await Sluice.connect({ url: house.url });
    await other.enqueue(task("d2", { limits: [limit("d", { total: 9 })] }));
    expect((await inForce("d")).total).toBe(5);
    await other.sync([limit("d", { total: 9 })]);
    expect((await inForce("d")).total).toBe(9);
    await other.close();
  });

  test("a task's concurrency is a limit with the task's name, and sync of the task updates it", async () => {
    await house.sluice.enqueue(task("own", { concurrency: 2 }));
    expect((await inForce("own")).total).toBe(2);
    await house.sluice.enqueue(task("own", { concurrency: 7 }));
    expect((await inForce("own")).total).toBe(2);
    await house.sluice.sync([task("own", { concurrency: 7 })]);
    expect((await inForce("own")).total).toBe(7);
  });

  test("sync of a task updates the limits in its list", async () => {
    const listed = (n: number) =>
      task("listed", {
        limits: [limit("in-list", { total: n }), limit("keys", { perKey: n }).for(1)],
      });
    await house.sluice.sync([listed(3)]);
    await house.sluice.sync([listed(4)]);
    expect((await inForce("in-list")).total).toBe(4);
    expect((await inForce("keys")).perKey).toBe(4);
  });

  test("a declared limit of null means no limit", async () => {
    await house.sluice.sync([limit("free", { total: null, perKey: null })]);
    expect(await inForce("free")).toEqual({ total: null, perKey: null, overridden: false });
  });
});

describe("limits.set", () => {
  test("limits.set overrides the declared number through every sync", async () => {
    const mail = limit("set", { total: 5, perKey: 2 });
    await house.sluice.limits.set(mail, { total: 1 });
    expect(await inForce("set")).toEqual({ total: 1, perKey: 2, overridden: true });
    await house.sluice.sync([limit("set", { total: 8, perKey: 3 })]);
    expect(await inForce("set")).toEqual({ total: 1, perKey: 3, overridden: true });
    await house.sluice.limits.set("set", { total: null, perKey: 0 });
    expect(await inForce("set")).toEqual({ total: null, perKey: 0, overridden: true });
    await house.sluice.limits.set("set", { total: "declared" });
    expect(await inForce("set")).toEqual({ total: 8, perKey: 0, overridden: true });
    await house.sluice.limits.set("set", { perKey: "declared" });
    expect(await inForce("set")).toEqual({ total: 8, perKey: 3, overridden: false });
  });

  test("limits.set refuses an undeclared limit and a part that the limit does not have", async () => {
    await house.sluice.sync([limit("flat", { total: 1 }), limit("keyed", { perKey: 1 })]);
    const set = house.sluice.limits;
    expect(await codeOf(() => set.set("nobody's", { total: 1 }))).toBe("unknown_limit");
    expect(await codeOf(() => set.get("nobody's"))).toBe("unknown_limit");
    expect(await codeOf(() => set.set("flat", { perKey: 1 }))).toBe("limit_shape");
    expect(await codeOf(() => set.set("keyed", { total: 1 }))).toBe("limit_shape");
    expect(await codeOf(() => set.set("flat", {}))).toBe("invalid_option");
    expect(await codeOf(() => set.set("flat", { total: -1 }))).toBe("invalid_option");
    expect(await codeOf(() => set.set("flat", { total: "none" as never }))).toBe("invalid_option");
    expect(await codeOf(() => set.set({ name: "flat" } as never, { total: 1 }))).toBe("invalid_name");
    expect(await inForce("flat")).toMatchObject({ total: 1, overridden: false });
  });

  test("limits.list sorts limits by name", async () => {
    const names = (await house.sluice.limits.list()).map((one) => one.name);
    expect(names).toEqual(names.toSorted());
    expect(names).toContain("flat");
  });
});

describe("the use of a limit", () => {
  test.each([{ perKey: 2 }, { perKey: 2, total: 9 }])(
    "a limit of %j reports its used slots: in all, the number of keys, and of the fullest key",
    async (shape) => {
      const account = limit(`used-${JSON.stringify(shape)}`, shape);
      const busy = task(`busy-${JSON.stringify(shape)}`, {
        input: type<string>(),
        limits: [{ limit: account, key: (key) => key }],
      });
      const [released, release] = signal();
      const [threeRun, tellThreeRun] = signal();
      let running = 0;
      const handler = busy.handle(() => {
        if (++running === 3) tellThreeRun();
        return released;
      });
      const worker = await house.work([handler]);
      const many = await house.sluice.enqueueMany(busy, ["a", "a", "a", "b"]);
      await threeRun;
      const inUse = { used: 3, keysInUse: 2, usedMax: 2 };
      expect(await house.sluice.limits.get(account)).toMatchObject(inUse);
      release();
      for (const id of many) await house.sluice.task(id).result({ timeoutMs: 10_000 });
      await worker.stop();
      const free = { used: 0, keysInUse: 0, usedMax: 0 };
      expect(await house.sluice.limits.get(account)).toMatchObject(free);
    },
  );

  test("a limit without keys reports its used slots without keys", async () => {
    await house.sluice.sync([limit("used-flat", { total: 1 })]);
    const none = { used: 0, keysInUse: undefined, usedMax: undefined };
    expect(await house.sluice.limits.get("used-flat")).toMatchObject(none);
  });
});

/** A promise and the function that resolves it. */
function signal(): [Promise<void>, () => void] {
  let give!: () => void;
  return [new Promise<void>((resolve) => (give = resolve)), give];
}

describe("a limit of 0", () => {
  test.each([
    ["declared", async () => limit("zero-declared", { total: 0 })],
    [
      "set",
      async () => {
        const one = limit("zero-set", { total: 5 });
        await house.sluice.limits.set(one, { total: 0 });
        return one;
      },
    ],
  ])("a total of 0 that is %s stops its tasks until it is raised", async (how, make) => {
    const one = await make();
    const held = task(`held-${how}`, { limits: [one] });
    const worker = await house.work([held.handle(() => "went")]);
    const handle = await house.sluice.enqueue(held);
    await idle(handle);
    await house.sluice.limits.set(one, { total: 1 });
    expect(await handle.result({ timeoutMs: 10_000 })).toBe("went");
    await worker.stop();
  });

  test("a concurrency of 0 and a limit per key of 0 stop their tasks", async () => {
    const tenant = limit("zero-tenant", { perKey: 0 });
    const a = task("zero-own", { concurrency: 0 });
    const b = task("zero-keyed", { limits: [tenant.for("acme")] });
    const worker = await house.work([a.handle(() => 1), b.handle(() => 2)]);
    const [first, second] = [await house.sluice.enqueue(a), await house.sluice.enqueue(b)];
    await Promise.all([idle(first), idle(second)]);
    await house.sluice.limits.set("zero-own", { total: 1 });
    await house.sluice.limits.set(tenant, { perKey: 1 });
    expect(await first.result({ timeoutMs: 10_000 })).toBe(1);
    expect(await second.result({ timeoutMs: 10_000 })).toBe(2);
    await worker.stop();
  });

  test("a limit below 0 is refused wherever it is given", async () => {
    expect(await codeOf(() => limit("x", { total: -1 }))).toBe("invalid_option");
    expect(await codeOf(() => limit("x", { perKey: -1 }))).toBe("invalid_option");
    expect(await codeOf(() => task("x", { concurrency: -1 }))).toBe("invalid_option");
    const bare = task("bare");
    await refused(house, "invalid_option", () => house.sluice.enqueue(bare, undefined, { group: "x", groupLimit: -1 }));
  });
});

test("order key, key, group and concurrency of one task all hold at once", async () => {
  const shop = limit("shop", { perKey: 2, total: 3 });
  const all = task("all", {
    input: type<{ n: number; shop: string; account: string }>(),
    concurrency: 4,
    order: (i) => i.account,
    limits: [{ limit: shop, key: (i) => i.shop }],
  });
  const running = new Map<string, number>();
  const peaks = new Map<string, number>();
  const count = (key: string, by: number): void => {
    running.set(key, (running.get(key) ?? 0) + by);
    peaks.set(key, Math.max(peaks.get(key) ?? 0, running.get(key)!));
  };
  const group = crowd(3);
  const worker = await house.work([
    all.handle(async (i) => {
      const keys = [`account ${i.account}`, `shop ${i.shop}`, "total"];
      for (const key of keys) count(key, 1);
      await group.pass(() => setTimeout(3));
      for (const key of keys) count(key, -1);
    }),
  ]);
  const inputs = Array.from({ length: 90 }, (_, n) => ({
    n,
    shop: `s${n % 2}`,
    account: `a${n % 9}`,
  }));
  const many = await house.sluice.enqueueMany(all, inputs, { group: "all-group", groupLimit: 3 });
  await Promise.all(many.ids().map((id) => house.sluice.task(id).result({ timeoutMs: 20_000 })));
  const peakOf = (what: string) =>
    Math.max(...[...peaks].filter(([key]) => key.startsWith(what)).map(([, peak]) => peak));
  // Two shops share three slots, so one of them has two at some time.
  expect([peakOf("total"), peakOf("shop"), peakOf("account")]).toEqual([3, 2, 1]);
  expect(await house.sluice.limits.get("shop")).toMatchObject({ used: 0 });
  await worker.stop();
  expect(await house.sql("select * from sluice.violation")).toEqual([]);
});

test("limits.set succeeds although shedding fails", async () => {
  const own = await openHouse();
  await own.sluice.sync([limit("lowered", { perKey: 5 })]);
  await own.sql(`create or replace function sluice.shed(p_max int default 500, out shed int, out cleared int)
    language plpgsql as $$ begin raise 'no shed today'; end $$`);
  await own.sluice.limits.set("lowered", { perKey: 2 });
  expect(await own.sluice.limits.get("lowered")).toMatchObject({ perKey: 2, overridden: true });
  await own.close();
});

test("slots of one limit are not mistaken for slots of two limits whose ids add up to it", async () => {
  const own = await openHouse();
  const both = task("both", { concurrency: 1, limits: [limit("two", { total: 1 })] });
  const third = task("third", { limits: [limit("three", { total: 1 })] });
  // A task's own limit is declared after those of its list.
  await own.sluice.sync([task("both", { concurrency: 1 }), both, third]);
  expect(await own.sql("select id, name from sluice.limits order by id")).toEqual([
    { id: 1, name: "both" },
    { id: 2, name: "two" },
    { id: 3, name: "three" },
  ]);
  const handles = [await own.sluice.enqueue(third), await own.sluice.enqueue(both)];
  // One permit: the step that settles the first task claims the second.
  await own.work([both.handle(() => {}), third.handle(() => {})], { maxConcurrentTasks: 1 });
  for (const handle of handles) await handle.result({ timeoutMs: 10_000 });
  expect(await own.sql("select * from sluice.violation")).toEqual([]);
  for (const { name, used } of await own.sluice.limits.list()) expect([name, used]).toEqual([name, 0]);
  await own.close();
});

test("a limit that another client has removed is declared again at its next use", async () => {
  const listed = task("again-listed", { limits: [limit("again", { total: 3 })] });
  const chosen = task("again-chosen", { limits: () => [limit("again", { total: 3 })] });
  const enqueueAll = async (): Promise<void> => {
    await house.sluice.enqueue(listed);
    await house.sluice.enqueueMany(chosen, [undefined, undefined]);
    await house.sluice.enqueue(task("again-group"), undefined, { group: "again" });
  };
  await enqueueAll();
  const other = await Sluice.connect({ url: house.url });
  expect(await other.limits.remove("again")).toBe(true);
  await other.close();
  await enqueueAll();
  expect((await inForce("again")).total).toBe(3);
});
