import { inspect } from "node:util";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import pg from "pg";
import { Client } from "../../src/client.js";
import { isSluiceError, limit, Sluice, task, type, type SluiceError } from "../../src/index.js";
import { codeOf, openHouse, type House } from "./house.js";

// Common mistakes of new users, and their error messages.
let house: House;
beforeAll(async () => {
  house = await openHouse();
});
afterAll(() => house.close());

const echo = task("echo", { input: type<unknown>() });

/** The SluiceError that the attempt rejects with. */
async function refusal(attempt: () => unknown): Promise<SluiceError> {
  try {
    await attempt();
  } catch (e) {
    if (isSluiceError(e)) return e;
    throw e;
  }
  throw new Error("nothing was refused");
}

describe("refusals of connect()", () => {
  test.each([{}, 5, "pool", null, { query: () => {} }, { options: {} }, { query: 1, options: {} }])(
    "connect() refuses %j as a pool",
    async (pool) => {
      const error = await refusal(() => Sluice.connect({ pool: pool as never }));
      expect(error).toMatchObject({ code: "invalid_option", details: { option: "pool" } });
      expect(error.message).toMatch(/^pool must be a Pool of the package pg/);
    },
  );

  test.each([{ log() {} }, { debug() {}, info() {}, warn: "no", error() {} }, null, 5])(
    "connect() refuses %j as a logger",
    async (logger) => {
      const error = await refusal(() => Sluice.connect({ url: house.url, logger } as never));
      expect(error).toMatchObject({ code: "invalid_option", details: { option: "logger" } });
      expect(error.message).toMatch(/^logger must have the functions .* missing: .*warn/);
    },
  );

  test.each([Sluice, Client])("new %o is refused with a hint to connect()", async (door) => {
    const Constructor = door as unknown as new (options: object) => Sluice;
    for (const options of [{ url: house.url }, undefined, null, 5, { db: {} }]) {
      const error = await refusal(() => new Constructor(options as never));
      expect(error.code).toBe("invalid_option");
      expect(error.message).toContain("await Sluice.connect(options)");
    }
  });

  test("Client.connect() refuses an embedded server", async () => {
    const error = await refusal(() => Client.connect({ embedded: true } as never));
    expect(error).toMatchObject({ code: "embedded_unsupported", details: { option: "embedded" } });
    expect(error.message).toContain('startEmbedded() of "sluice/embedded"');
  });

  test("Client.connect() needs no more than a database", async () => {
    const client = await Client.connect({ url: house.url, migrate: false, listen: false });
    const handle = await client.enqueue(echo, 1);
    expect(await handle.cancel()).toBe("cancelled");
    await client.close();
  });
});

describe("an invalid tx", () => {
  const odd: [string, unknown, RegExp][] = [
    ["an empty object", {}, /must have a function query\(text, params\)/],
    ["a query that is not a function", { query: { users: {} } }, /must have a function query/],
    ["a pool", { query: async () => ({ rows: [] }), totalCount: 1 }, /not a pool/],
    ["a query that gives nothing", { query: () => undefined }, /promise of \{ rows: \[\.\.\.\] \}/],
    ["a query that gives rows alone", { query: async () => [{ ids: "{1}" }] }, /\{ rows/],
    ["a query that wants a callback", { query: (_: string, done: () => void) => done() }, /threw/],
  ];

  test.each(odd)(
    "an invalid tx is refused with a specific message, and nothing is enqueued: %s",
    async (_, tx, message) => {
      const before = await house.tasks();
      const known = await house.sluice.enqueue(echo, 0, { idempotencyKey: "known" });
      for (const attempt of [
        () => house.sluice.enqueue(echo, 1, { tx: tx as never }),
        () => house.sluice.enqueueMany(echo, [1, 2], { tx: tx as never }),
        () => known.cancel({ tx: tx as never }),
      ]) {
        const error = await refusal(attempt);
        expect(error).toMatchObject({ code: "invalid_option", details: { option: "tx" } });
        expect(error.message).toMatch(message);
        expect(error.message).toContain("sluice/tx");
      }
      expect(await house.tasks()).toBe(before + (known.existed ? 0 : 1));
    },
  );
});

describe("a closed client", () => {
  test("a closed client refuses every call, even if its pool is still open", async () => {
    const pool = new pg.Pool({ connectionString: house.url });
    pool.on("error", () => {});
    for (const options of [{ url: house.url }, { pool }]) {
      const sluice = await Sluice.connect(options);
      const handle = await sluice.enqueue(echo, 1);
      await sluice.close();
      for (const attempt of [
        () => sluice.enqueue(echo, 1),
        () => sluice.enqueueMany(echo, [1]),
        () => sluice.worker({ handlers: [echo.handle(() => 1)] }),
        () => sluice.counts(),
        () => sluice.pause("default"),
        () => sluice.resume("default"),
        () => sluice.retry("1"),
        () => sluice.unblock("1"),
        () => sluice.sync([echo]),
        () => sluice.limits.list(),
        () => sluice.limits.get("mail"),
        () => sluice.limits.set("mail", { total: 1 }),
        () => sluice.limits.remove("mail"),
        () => sluice.limits.holders("mail"),
        () => sluice.queues.list(),
        () => sluice.workers.list(),
        () => handle.status(),
        () => handle.result(),
        () => handle.cancel(),
      ])
        expect(await codeOf(attempt), String(attempt)).toBe("closed");
    }
    await pool.end();
  });

  test("close() rejects a pending wait for a result with the code closed", async () => {
    const sluice = await Sluice.connect({ url: house.url });
    const handle = await sluice.enqueue(task("never"));
    const waiting = codeOf(() => handle.result());
    const awaited = "select from sluice.awaited where id = $1";
    await expect.poll(async () => (await house.sql(awaited, [handle.id])).length).toBe(1);
    await sluice.close();
    expect(await waiting).toBe("closed");
  });
});

test("pause() and resume() refuse an unknown queue", async () => {
  await house.sluice.enqueue(task("queued", { queue: "mails" }));
  await house.sluice.pause("mails");
  await house.sluice.resume("mails");
  for (const attempt of [() => house.sluice.pause("mial"), () => house.sluice.resume("mial")]) {
    const error = await refusal(attempt);
    expect(error.code).toBe("unknown_queue");
    expect(error).toMatchObject({ details: { queue: "mial" } });
    expect(error.message).toMatch(/^there is no queue named "mial"; there are .*"mails"/);
  }
});

test("the error for an unknown limit lists the limits that exist, those declared in code first", async () => {
  await house.sluice.sync([limit("mail-slots", { total: 1 })]);
  await house.sluice.enqueueMany(echo, [1], { group: "a-group" });
  const { limits } = house.sluice;
  for (const attempt of [() => limits.get("mial"), () => limits.set("mial", { total: 1 })]) {
    const error = await refusal(attempt);
    expect(error).toMatchObject({ code: "unknown_limit", details: { limit: "mial" } });
    expect(error.message).toMatch(/^there is no limit named "mial"; there are .*"mail-slots".*"a-group"/);
  }
  const groups = Array.from({ length: 25 }, (_, i) => limit(`z-${i}`, { total: 1 }));
  await house.sluice.sync(groups);
  expect((await refusal(() => limits.get("mial"))).message).toMatch(/ and more$/);
});

test("an idempotency conflict names the key and the task that has it", async () => {
  const { id } = await house.sluice.enqueue(echo, 1, { idempotencyKey: "order-7" });
  for (const attempt of [
    () => house.sluice.enqueue(echo, 2, { idempotencyKey: "order-7" }),
    () => house.sluice.enqueueMany(echo, [1, 2], { idempotencyKey: (n) => `order-${Number(n) + 5}` }),
  ]) {
    const error = await refusal(attempt);
    expect(error).toMatchObject({ code: "idempotency_conflict", details: { id } });
    expect(error.message).toContain("order-7");
    expect(error.message).toContain(`task ${id}`);
  }
});

test("a conflict between a type's concurrency and a limit per key of the same name explains both", async () => {
  await house.sluice.sync([limit("clash", { perKey: 1 })]);
  await house.sluice.enqueue(task("crash", { concurrency: 1 }));
  const crash = limit("crash", { perKey: 1 });
  for (const [name, attempt] of [
    ["clash", () => house.sluice.enqueue(task("clash", { concurrency: 1 }))],
    ["crash", () => house.sluice.enqueue(task("other", { limits: [crash.for("k")] }))],
    ["crash", () => house.sluice.sync([crash])],
  ] as const) {
    const error = await refusal(attempt);
    expect(error).toMatchObject({ code: "limit_shape", details: { limit: name } });
    expect(error.message).toContain(`limit("${name}") and the concurrency of task "${name}" are the same limit`);
  }
});

test("the error for a limit that is used without a key and is per key in the database names the limit and the task", async () => {
  const keyed = limit("vendor", { perKey: 1, total: 5 });
  const other = limit("region", { perKey: 1 });
  await house.sluice.sync([keyed, other]);
  const flat = limit("vendor", { total: 5 });
  const plain = task("plain", { limits: [flat] });
  const mixed = task("mixed", { limits: [other.for("eu"), limit("mail", { total: 1 }), flat] });
  const client = await house.begin();
  onTestFinished(() => client.release(true));
  for (const [type, attempt] of [
    ["plain", () => house.sluice.enqueue(plain)],
    ["plain", () => house.sluice.enqueueMany(plain, [undefined, undefined])],
    ["mixed", () => house.sluice.enqueue(mixed)],
    ["echo", () => house.sluice.enqueue(echo, 1, { group: "vendor" })],
    ["plain", () => house.sluice.enqueue(plain, undefined, { tx: client })],
  ] as const) {
    const error = await refusal(attempt);
    expect(error).toMatchObject({ code: "limit_shape", details: { limit: "vendor", type } });
    expect(error.message).toContain(`task "${type}" uses limit "vendor" without a key`);
  }
});

test("EnqueuedMany prints its counts when it is inspected", async () => {
  const many = await house.sluice.enqueueMany(echo, [1, 2, 3]);
  expect(inspect(many)).toBe(`EnqueuedMany { count: 3, existed: 0, first: '${many.ids()[0]}' }`);
  const none = await house.sluice.enqueueMany(echo, []);
  expect(inspect(none)).toBe("EnqueuedMany { count: 0, existed: 0, first: undefined }");
});

describe("one bad input among many", () => {
  const counted = task("counted", {
    input: type<unknown>(),
    limits: [limit("many", { total: 1 })],
  });
  const inputs = (bad: number) => Array.from({ length: bad + 10 }, (_, i) => (i === bad ? 1n : i));
  async function* stream(bad: number) {
    yield* inputs(bad);
  }

  test.each<[string, () => Iterable<unknown> | AsyncIterable<unknown>, number, number]>([
    ["the first", () => inputs(0), 0, 0],
    ["in the first chunk", () => inputs(7), 7, 0],
    ["in the third chunk", () => inputs(2_500), 2_500, 2_000],
    ["of a stream", () => stream(1_001), 1_001, 1_000],
  ])(
    "a bad input is reported with its index and the number of enqueued tasks: %s",
    async (_, list, index, enqueued) => {
      const before = await house.tasks();
      const error = await refusal(() => house.sluice.enqueueMany(counted, list()));
      expect(error).toMatchObject({
        code: "input_not_serialisable",
        details: { index, enqueued, path: "$" },
      });
      expect(error.message).toContain(`a BigInt at $ (input ${index}); ${enqueued} tasks were already enqueued`);
      expect((await house.tasks()) - before).toBe(enqueued);
    },
  );

  test("a bad input in a transaction is reported, and a rollback removes the tasks before it", async () => {
    const before = await house.tasks();
    const tx = await house.begin();
    const error = await refusal(() => house.sluice.enqueueMany(counted, inputs(1_500), { tx }));
    expect(error.details).toMatchObject({ index: 1_500, enqueued: 1_000 });
    await tx.query("rollback");
    tx.release();
    expect(await house.tasks()).toBe(before);
  });

  test("a chunk that the database refuses is reported with the number of enqueued tasks", async () => {
    await house.sluice.enqueue(echo, "other", { idempotencyKey: "late-1500" });
    const list = Array.from({ length: 2_000 }, (_, n) => n);
    const error = await refusal(() =>
      house.sluice.enqueueMany(echo, list, { idempotencyKey: (n) => `late-${n as number}` }),
    );
    expect(error).toMatchObject({ code: "idempotency_conflict", details: { enqueued: 1_000 } });
    expect(error.message).toContain("late-1500");
  });

  test("an error of the input stream is rethrown unchanged", async () => {
    const broken = new Error("the file ended");
    const failure = house.sluice.enqueueMany(
      echo,
      (async function* () {
        yield 1;
        throw broken;
      })(),
    );
    await expect(failure).rejects.toBe(broken);
  });
});
