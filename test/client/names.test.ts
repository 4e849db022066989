import { createHash } from "node:crypto";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limit, Sluice, task, type, workflow, type ErrorCode } from "../../src/index.js";
import { codeOf, openHouse, refused, type House } from "./house.js";

const good = task("good", { input: type<number>() });
let house: House;
let intact: string;
beforeAll(async () => {
  house = await openHouse();
  intact = await shapeOfDatabase();
});
afterAll(() => house.close());

/** Every schema, table, column and function there is. */
async function shapeOfDatabase(): Promise<string> {
  const rows = await house.sql(`
    select nspname as a, '' as b, '' as c from pg_namespace where nspname !~ '^pg_'
    union all select table_schema, table_name, string_agg(column_name, ',' order by column_name)
      from information_schema.columns where table_schema !~ '^pg_' group by 1, 2
    union all select n.nspname, p.proname, md5(p.prosrc) from pg_proc p
      join pg_namespace n on n.oid = p.pronamespace where n.nspname !~ '^pg_' order by 1, 2, 3`);
  return createHash("md5").update(JSON.stringify(rows)).digest("hex");
}

/** Expects the next valid task after a refusal to be enqueued and to run. */
async function expectIntact(): Promise<void> {
  expect(await shapeOfDatabase()).toBe(intact);
  const { id } = await house.sluice.enqueue(good, 1);
  expect(await house.sluice.task(id).cancel()).toBe("cancelled");
}

const control = ["a\u0000b", "a\nb", "a\tb", "\u001e", "\u001f", "a\u007fb", "a\u0085b"];
const surrogates = ["a\ud800", "\udc00a"];
const notText = [undefined, null, true, {}, [], ["a"], () => "a", Symbol("a"), NaN, 1.5, new Date()];
const injections = [
  "'; drop schema sluice cascade; --",
  '"; drop schema sluice cascade; --',
  "sluice.task; drop table sluice.task",
  "$1",
  "$$; drop table sluice.task; $$",
  "\\'; drop table sluice.task; --",
  "a{1,2},NULL",
  '{"a","b"}',
  "{}",
  ",",
  "NULL",
  "null",
  "%s %L %I",
  "sluice.",
  "'sluice'",
  "*",
];
const words = ["__proto__", "constructor", "toString", "hasOwnProperty", "prototype", "valueOf"];

describe("names", () => {
  const bad = [...notText, 5, 5n, "", "a".repeat(129), ...control, ...surrogates];

  test.each<[string, (name: never) => unknown]>([
    ["a task", (name) => task(name)],
    ["a queue", (queue) => task("t", { queue: queue ?? null })],
    ["a limit", (name) => limit(name, { total: 1 })],
    ["an order's scope", (scope) => task("t", { order: { key: () => "a", scope: scope ?? null } })],
    ["a group", (group) => house.sluice.enqueue(good, 1, { group: group ?? null })],
    ["a queue to pause", (queue) => house.sluice.pause(queue)],
    ["a queue to resume", (queue) => house.sluice.resume(queue)],
    ["a limit to set", (name) => house.sluice.limits.set(name, { total: 1 })],
    ["a limit to read", (name) => house.sluice.limits.get(name)],
    ["a worker", (name) => house.sluice.worker({ handlers: [good.handle(() => 1)], name: name ?? "" })],
  ])("names of %s that are empty, too long, not text or contain control characters are refused", async (_, use) => {
    for (const name of bad) await refused(house, "invalid_name", () => use(name as never));
    await expectIntact();
  });

  test("a schema name that is not a plain identifier is refused", async () => {
    // In lower case "null" is a plain identifier, and quoted it is a fine name.
    const fancy = [
      ...injections.filter((name) => name !== "null"),
      "Sluice",
      "a-b",
      "1a",
      "pg_x",
      "a b",
      "ü",
      "a".repeat(49),
      "a.b",
    ];
    for (const schema of [...bad.filter((name) => name !== undefined && name !== null), ...fancy]) {
      const connect = () => Sluice.connect({ url: house.url, schema: schema as string });
      expect(await codeOf(connect)).toBe("invalid_option");
    }
    await expectIntact();
  });

  test("names that attempt an SQL injection work like any other name", async () => {
    const odd = [...injections, ...words].map((name) =>
      task(name, {
        queue: name,
        concurrency: 2,
        input: type<string>(),
        order: { key: (key) => key, scope: name },
        limits: [limit(`${name} per key`, { perKey: 1 }).for((key: string) => key)],
      }),
    );
    const worker = await house.work(odd.map((one) => one.handle((input, ctx) => [input, ctx.type, ctx.queue])));
    for (const one of odd) {
      const name = one.type;
      const options = { group: `${name} group`, groupLimit: 3, idempotencyKey: name };
      const handle = await house.sluice.enqueue(one, name, options);
      expect(await handle.result({ timeoutMs: 10_000 })).toEqual([name, name, name]);
      expect(await handle.status()).toMatchObject({ type: name, queue: name, state: "succeeded" });
      await house.sluice.limits.set(name, { total: 1 });
      expect(await house.sluice.limits.get(name)).toMatchObject({ name, total: 1 });
      await house.sluice.pause(name);
      await house.sluice.resume(name);
    }
    await worker.stop();
    expect(await house.sql("select * from sluice.violation")).toEqual([]);
    await expectIntact();
  });

  test("names of 128 characters in any script are accepted", async () => {
    const names = ["a".repeat(128), "漢".repeat(128), "😀".repeat(64), " ", "\u200b"];
    const long = names.map((name) =>
      task(name, { queue: name, concurrency: 1, order: { key: () => "k", scope: name } }),
    );
    const worker = await house.work(
      long.map((one) => one.handle(() => one.type)),
      { name: names[1]! },
    );
    for (const one of long) {
      const handle = await house.sluice.enqueue(one);
      expect(await handle.result({ timeoutMs: 10_000 })).toBe(one.type);
    }
    await worker.stop();
  });
});

describe("keys", () => {
  const tenant = limit("tenant", { perKey: 5 });
  const input = type<{ key: never }>();
  const limited = task("limited", { input, limits: (i) => [tenant.for(i.key)] });
  const listed = task("listed", { input, limits: [{ limit: tenant, key: (i) => i.key }] });
  const ordered = task("ordered", { input, order: (i) => i.key });
  const uses: [string, (key: never) => unknown, ErrorCode | "accepted"][] = [
    ["a limit decided in code", (key) => house.sluice.enqueue(limited, { key }), "key_missing"],
    ["a limit in a list", (key) => house.sluice.enqueue(listed, { key }), "key_missing"],
    ["an order", (key) => house.sluice.enqueue(ordered, { key }), "accepted"],
    ["idempotency", (idempotencyKey) => house.sluice.enqueue(good, 1, { idempotencyKey }), "accepted"],
    ["idempotency of many", (key) => house.sluice.enqueueMany(good, [1], { idempotencyKey: () => key }), "accepted"],
  ];
  // These cannot be stored in an input, but a function may well return them.
  const bad = [true, {}, ["a"], NaN, 1.5, 2 ** 53, Infinity, "", "a".repeat(513), ...control];

  test.each(uses)(
    "keys of %s that are empty, too long, not text or contain control characters are refused",
    async (_, use) => {
      for (const key of bad) {
        const code = await codeOf(() => use(key as never));
        expect(["invalid_key", "input_not_storable", "input_not_serialisable"]).toContain(code);
      }
      await expectIntact();
    },
  );

  test("a missing key is refused by a limit per key, but not by an order or an idempotency key", async () => {
    for (const [name, use, code] of uses) {
      expect(await codeOf(() => use(undefined as never)), name).toBe(code);
    }
    const none = task("none", { limits: () => [tenant as never] });
    await refused(house, "key_missing", () => house.sluice.enqueue(none));
    expect(await codeOf(() => task("none", { limits: [tenant as never] }))).toBe("key_missing");
  });

  test("keys that attempt an SQL injection work like any other key", async () => {
    const all = task("all", {
      input: type<string>(),
      order: (key) => key,
      limits: (key) => [tenant.for(key), limit("shop", { perKey: 1, total: 3 }).for(key)],
    });
    const keys = [...injections, ...words, "a".repeat(512), "漢".repeat(512), "😀".repeat(256)];
    const worker = await house.work([all.handle((key) => key)]);
    for (const key of keys) {
      const handle = await house.sluice.enqueue(all, key, { idempotencyKey: key });
      expect(await handle.result({ timeoutMs: 10_000 })).toBe(key);
      const again = await house.sluice.enqueue(all, key, { idempotencyKey: key });
      expect(again).toMatchObject({ id: handle.id, existed: true });
    }
    await worker.stop();
    expect(await house.sql("select * from sluice.violation")).toEqual([]);
    await expectIntact();
  });

  test("numeric keys equal their text", async () => {
    const id = (await house.sluice.enqueue(good, 1, { idempotencyKey: "7" })).id;
    const many = await house.sluice.enqueueMany(good, [1, 1], {
      idempotencyKey: (() => 7) as never,
    });
    expect(many.ids()).toEqual([id, id]);
  });
});

test("an invalid task id is refused without any effect", async () => {
  for (const id of ["", "a", "1; drop table sluice.task", "-1", "1.5", "9".repeat(19), 5, null]) {
    for (const use of [
      () => house.sluice.task(id as never),
      () => house.sluice.retry(id as never),
      () => house.sluice.unblock(id as never),
    ]) {
      expect(await codeOf(use)).toBe("task_not_found");
    }
  }
  const nobody = house.sluice.task("999999999999999999");
  expect(await nobody.status()).toBeNull();
  expect(await nobody.cancel()).toBe("unknown");
  expect(await house.sluice.retry(nobody.id)).toBe(false);
  expect(await house.sluice.unblock(nobody.id)).toBe(false);
  expect(await codeOf(() => nobody.result())).toBe("result_not_kept");
  await expectIntact();
});

test("an enormous name is shortened in every error message", async () => {
  const { sluice } = house;
  const sql: House["sql"] = (text, params) => house.sql(text, params);
  const enormous = "n".repeat(1_000_000);
  await sluice.enqueue(task("known"));
  const attempts: (() => unknown)[] = [
    () => task(enormous),
    () => task("known", { [enormous]: 1 }),
    () => workflow(enormous, { input: type<object>() }, () => ({})),
    () => sluice.pause(enormous),
    () => sluice.limits.set(enormous, { total: 1 }),
    () => sql("select sluice.enqueue($1)", [enormous]),
    () => sql("select sluice.enqueue('known', queue => $1)", [enormous]),
    () => sql("select sluice.enqueue('known', keys => jsonb_build_object($1::text, 1))", [enormous]),
    () => sql("select sluice.set_limit($1, 1, null)", [enormous]),
    () => sql("select sluice.pause_queue($1, true)", [enormous]),
  ];
  for (const attempt of attempts) {
    const error = await (async () => attempt())().then(
      () => null,
      (e: unknown) => e as { message: string; details?: object },
    );
    expect(error, String(attempt)).not.toBeNull();
    const { message, details } = error!;
    expect(message.length + JSON.stringify(details ?? {}).length, String(attempt)).toBeLessThan(2_000);
  }
});
