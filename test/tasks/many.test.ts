import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limit, task, type, type Queryable } from "../../src/index.js";
import { openHouse, refused, type House } from "../client/house.js";

const plain = task("plain", { input: type<number>() });
let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const inputsOf = async (ids: readonly string[]): Promise<unknown[]> =>
  (
    await house.sql<{ input: unknown }>("select input from sluice.task where id = any ($1::bigint[]) order by id", [
      ids,
    ])
  ).map((row) => row.input);

async function* slowly<T>(items: Iterable<T>): AsyncGenerator<T> {
  for (const item of items) {
    await Promise.resolve();
    yield item;
  }
}

describe("enqueueMany", () => {
  test.each<[string, () => Iterable<number> | AsyncIterable<number>]>([
    ["a list", () => [1, 2, 3]],
    ["a set", () => new Set([1, 2, 3])],
    [
      "a generator",
      function* () {
        yield* [1, 2, 3];
      },
    ],
    ["an async generator", () => slowly([1, 2, 3])],
    ["a stream", () => streamOf([1, 2, 3])],
  ])("enqueueMany takes %s and keeps its order", async (_, inputs) => {
    const many = await house.sluice.enqueueMany(plain, inputs());
    expect([many.count, many.existed]).toEqual([3, 0]);
    expect([...many]).toEqual(many.ids());
    expect(await inputsOf(many.ids())).toEqual([1, 2, 3]);
  });

  test("enqueueMany of an empty list enqueues nothing", async () => {
    const before = await house.tasks();
    for (const none of [[], slowly([])]) {
      expect((await house.sluice.enqueueMany(plain, none)).ids()).toEqual([]);
    }
    expect(await house.tasks()).toBe(before);
  });

  test("enqueueMany applies the options of enqueue to every task", async () => {
    const many = await house.sluice.enqueueMany(plain, [1, 2], { priority: 7, delayMs: 60_000 });
    for (const id of many) {
      expect(await house.sluice.task(id).status()).toMatchObject({
        priority: 7,
        state: "scheduled",
      });
    }
  });

  test("enqueueMany takes an idempotency key per input", async () => {
    const idempotencyKey = (n: number) => (n === 0 ? undefined : `key-${n}`);
    const first = await house.sluice.enqueueMany(plain, [1, 0, 2, 1, 0], { idempotencyKey });
    const [a, b, c, d, e] = first.ids();
    expect(first.existed).toBe(1);
    expect(d).toBe(a);
    expect(new Set([a, b, c, e]).size).toBe(4);
    const again = await house.sluice.enqueueMany(plain, [2, 3, 1], { idempotencyKey });
    expect(again.existed).toBe(2);
    expect([again.ids()[0], again.ids()[2]]).toEqual([c, a]);
    await refused(house, "input_invalid", () =>
      house.sluice.enqueueMany(plain, [1], {
        idempotencyKey: () => JSON.parse("nonsense") as string,
      }),
    );
  });
});

describe("enqueueMany of 100,000 inputs", () => {
  test("enqueueMany reads at most two chunks ahead of what it has sent, so its memory is bounded", async () => {
    const total = 100_000;
    let given = 0;
    let sent = 0;
    let ahead = 0;
    const tx: Queryable = {
      async query(text, params) {
        const rows = await house.sql(text, params);
        sent += 1000;
        return { rows };
      },
    };
    async function* inputs(): AsyncGenerator<{ n: number; text: string }> {
      for (let n = 0; n < total; n++) {
        ahead = Math.max(ahead, ++given - sent);
        yield { n, text: "x".repeat(100) };
      }
    }
    const big = task("big", { input: type<{ n: number; text: string }>() });
    const many = await house.sluice.enqueueMany(big, inputs(), { tx });
    expect(many.count).toBe(total);
    expect(ahead).toBeLessThanOrEqual(2_001);
    const [row] = await house.sql(
      "select count(*)::int n, count(distinct input ->> 'n')::int d from sluice.task where id = any ($1::bigint[])",
      [many.ids()],
    );
    expect(row).toEqual({ n: total, d: total });
  });
});

describe("enqueueMany with a bad input or a broken source", () => {
  const bad = 2_500;
  function* inputs(): Generator<number> {
    for (let n = 0; n < 5_000; n++) yield n === bad ? (Symbol("bad") as never) : n;
  }

  test("enqueueMany keeps the whole chunks before a bad input, and leaves no statement in flight", async () => {
    const before = await house.tasks();
    await expect(house.sluice.enqueueMany(plain, inputs())).rejects.toMatchObject({
      code: "input_not_serialisable",
    });
    expect((await house.tasks()) - before).toBe(2_000);
  });

  test("enqueueMany in a transaction enqueues all tasks or none", async () => {
    const before = await house.tasks();
    const tx = await house.begin();
    await expect(house.sluice.enqueueMany(plain, inputs(), { tx })).rejects.toMatchObject({
      code: "input_not_serialisable",
    });
    await tx.query("rollback");
    expect(await house.tasks()).toBe(before);
    await tx.query("begin");
    const many = await house.sluice.enqueueMany(plain, slowly(Array(2_500).keys()), { tx });
    expect(await house.tasks()).toBe(before);
    await tx.query("commit");
    tx.release();
    expect(many.count).toBe(2_500);
    expect(await house.tasks()).toBe(before + 2_500);
  });

  test("enqueueMany closes its source after a bad input", async () => {
    let cleaned = 0;
    async function* source(): AsyncGenerator<number> {
      try {
        for (let n = 0; ; n++) yield n === 10 ? (1n as never) : n;
      } finally {
        cleaned++;
      }
    }
    await expect(house.sluice.enqueueMany(plain, source())).rejects.toMatchObject({
      code: "input_not_serialisable",
    });
    expect(cleaned).toBe(1);
  });

  test("enqueueMany rethrows an error of its source unchanged", async () => {
    const own = new Error("file not found");
    async function* source(): AsyncGenerator<number> {
      yield 1;
      throw own;
    }
    await expect(house.sluice.enqueueMany(plain, source())).rejects.toBe(own);
  });
});

test("enqueueMany with different limits keeps the order of the list in each order key", async () => {
  const a = limit("mixed-a", { total: 50 });
  const b = limit("mixed-b", { perKey: 50 });
  const mixed = task("mixed", {
    input: type<{ n: number; key: string }>(),
    order: (i) => (i.n % 11 === 0 ? null : i.key),
    limits: (i) => [[a], [], [b.for(i.key)], [a, b.for(i.key)], [b.for(i.key), a]][i.n % 5]!,
  });
  const inputs = Array.from({ length: 300 }, (_, n) => ({ n, key: `key-${n % 4}` }));
  const many = await house.sluice.enqueueMany(mixed, slowly(inputs));
  expect(await inputsOf(many.ids())).toEqual(inputs);
  const ran = new Map<string, number[]>();
  const worker = await house.work([
    mixed.handle(async (i) => {
      await new Promise((resolve) => setImmediate(resolve));
      if (i.n % 11 !== 0) ran.set(i.key, [...(ran.get(i.key) ?? []), i.n]);
    }),
  ]);
  await Promise.all(many.ids().map((id) => house.sluice.task(id).result({ timeoutMs: 20_000 })));
  for (let k = 0; k < 4; k++) {
    const wanted = inputs.filter((i) => i.n % 4 === k && i.n % 11 !== 0).map((i) => i.n);
    expect(ran.get(`key-${k}`)).toEqual(wanted);
  }
  await worker.stop();
});

/** A web stream of these items. */
function streamOf(items: readonly number[]): AsyncIterable<number> {
  return new ReadableStream<number>({
    start(controller) {
      for (const item of items) controller.enqueue(item);
      controller.close();
    },
  });
}
