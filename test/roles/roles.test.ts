import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { limit, task, type, type Sluice } from "../../src/index.js";
import { codeOf } from "../client/house.js";
import { until } from "../flow/scene.js";
import { collector } from "./collector.js";
import { openRealm, type Realm, type Role } from "./realm.js";

const mails = limit("mails", { total: 5 });
const tenant = limit("tenant", { perKey: 2 });
const ordered = task("ordered", {
  input: type<string>(),
  output: type<string>(),
  concurrency: 3,
  order: (key) => key,
  limits: [mails, tenant.for((key: string) => key)],
});
const plain = task("plain", { input: type<string>(), output: type<string>() });
const unserved = task("unserved", { input: type<string>() });

let realm: Realm;
let owner: Sluice;
let producer: Sluice;
let worker: Sluice;
let reader: Sluice;
const trouble = collector();

beforeAll(async () => {
  realm = await openRealm("jobs");
  [owner, producer, worker, reader] = await Promise.all([
    realm.connect("owner"),
    realm.connect("producer"),
    realm.connect("worker", { logger: trouble }),
    realm.connect("reader"),
  ]);
  const handlers = [ordered.handle((key) => key), plain.handle(write)];
  // Warnings about the load of the machine are not of interest.
  const pressure = {
    memoryPercentMax: false,
    eventLoopDelayMsMax: false,
    taskDurationP99MsMax: false,
  } as const;
  await worker.worker({ handlers, pollIntervalMs: 20, pressure }).start();
});
afterAll(() => realm.close());

/** A handler that does, by its input, everything that a handler may do with the database. */
async function write(text: string, ctx: Parameters<Parameters<typeof plain.handle>[0]>[1]) {
  if (text === "transaction") return ctx.transaction(async () => text);
  if (text === "enqueue") await ctx.enqueue(ordered, "from a handler");
  if (text === "fail once" && ctx.attempt === 1) throw new Error("once");
  return text;
}

const numbers = async () => (await owner.limits.list()).map(({ name, total, perKey }) => ({ name, total, perKey }));

const refusedTo = (role: Role, text: string) =>
  expect(realm.sql(role, text), text).rejects.toMatchObject({ code: "42501" });

describe("a producer", () => {
  test("enqueues and awaits the result, in order, under limits, and from a transaction", async () => {
    const handles = [
      await producer.enqueue(ordered, "a"),
      await producer.enqueue(ordered, "a", { idempotencyKey: "once" }),
      await producer.enqueue(plain, "x", { group: "group", groupLimit: 2 }),
      await producer.enqueue(plain, "later", { delayMs: 50 }),
    ];
    const client = new pg.Client(realm.url("producer"));
    await client.connect();
    await client.query("begin");
    handles.push(await producer.enqueue(ordered, "tx", { tx: client }));
    await client.query("commit");
    await client.end();
    const results = await Promise.all(handles.map((h) => h.result({ timeoutMs: 20_000 })));
    expect(results).toEqual(["a", "a", "x", "later", "tx"]);
    const many = await producer.enqueueMany(plain, ["1", "2", "3"]);
    expect(many.count).toBe(3);
  });

  test("enqueues from SQL", async () => {
    const [row] = await realm.sql(
      "producer",
      `select sluice.enqueue('ordered', '"sql"', order_key => 'k', keys => '{"tenant": "t"}')::text as id`,
    );
    expect(await producer.task(row!["id"] as string).result({ timeoutMs: 20_000 })).toBe("sql");
  });

  test("declares new types, queues and limits", async () => {
    const news = task("news", {
      input: type<string>(),
      queue: "new-queue",
      limits: [limit("new", { total: 1, perKey: 1 }).for((key: string) => key), mails],
    });
    expect((await (await producer.enqueue(news, "x")).status())?.state).toBe("waiting");
  });

  test("explains and cancels a task", async () => {
    const handle = await producer.enqueue(unserved, "x");
    expect((await handle.explain())!.reasons).toMatchObject([{ kind: "noWorker" }]);
    expect(await handle.cancel()).toBe("cancelled");
    expect((await handle.status())?.state).toBe("cancelled");
  });

  test("cannot claim, and cannot start a worker", async () => {
    const own = producer.worker({ handlers: [plain.handle((text) => text)] });
    expect(await codeOf(() => own.start())).toBe("not_permitted");
    await refusedTo("producer", "select * from sluice.step(1, 1, '{1}', 1)");
    await refusedTo("producer", "insert into sluice.running select id, 1, 1, 1, now(), 0, 0 from sluice.ready");
  });

  test("cannot settle, and cannot read or write tasks in any state", async () => {
    await refusedTo("producer", "select sluice.settle(1, '{1}', '{1}', '{fail}', '{0}', null)");
    await refusedTo("producer", "select sluice.settle_in_transaction(1, 1, 1, null, true)");
    await refusedTo("producer", "select * from sluice.settle_succeeded('{1}', '{1}', null, true)");
    const tables = "ready gated waiting scheduled parked suspect running done task dirty lane worker".split(" ");
    for (const table of tables) {
      await refusedTo("producer", `delete from sluice.${table}`);
      await refusedTo("producer", `select * from sluice.${table}`);
    }
    await refusedTo("producer", "insert into sluice.ready (id, stream, rank, attempt, turn) values (1, 1, 0, 0, 1)");
    await refusedTo(
      "producer",
      "insert into sluice.done (id, state, attempt, finished_at) values (1, 'succeeded', 1, now())",
    );
  });

  test("cannot change a limit, by the client or by SQL", async () => {
    const before = await numbers();
    expect(await codeOf(() => producer.limits.set("mails", { total: 50 }))).toBe("not_permitted");
    expect(await codeOf(() => producer.limits.remove("mails"))).toBe("not_permitted");
    expect(await codeOf(() => producer.sync([limit("mails", { total: 50 })]))).toBe("not_permitted");
    const more = task("ordered", { input: type<string>(), order: (k) => k, concurrency: 50 });
    expect(await codeOf(() => producer.sync([more]))).toBe("not_permitted");
    await refusedTo("producer", "update sluice.limits set total_declared = 50");
    await refusedTo("producer", "update sluice.gate set cap = 50");
    await refusedTo("producer", "update sluice.contract set gate = 0");
    await refusedTo("producer", "update sluice.stream set gate = 0");
    await refusedTo("producer", "select sluice.set_stream_gate('ordered', 0)");
    await refusedTo("producer", "select sluice.apply_limit(1)");
    expect(await numbers()).toEqual(before);
  });

  test("cannot list tasks or their inputs, and reads a task only by its id", async () => {
    const handle = await producer.enqueue(unserved, "secret");
    await refusedTo("producer", "select input from sluice.task_state");
    await refusedTo("worker", "select input from sluice.task_state");
    const rows = await realm.sql("producer", "select * from sluice.task_by_id($1)", [handle.id]);
    expect(rows).toMatchObject([{ type: unserved.type, state: "ready" }]);
    expect(rows[0]).not.toHaveProperty("input");
  });

  test("cannot create counters, streams or queues except through the declaring functions", async () => {
    await refusedTo("producer", "insert into sluice.gate (id, cap) values (99, 50)");
    await refusedTo("producer", "insert into sluice.gate_set (gates) values ('{1,2}')");
    await refusedTo("producer", "insert into sluice.gate_stream values (1, 1)");
    await refusedTo("producer", "insert into sluice.queue (name) values ('q')");
    await refusedTo("producer", "insert into sluice.stream (queue, type) values ('q', 't')");
    await refusedTo("producer", "update sluice.stream set many = true");
  });

  test("cannot give a type its own limit, which only a worker or a sync by the owner can", async () => {
    const own = task("own", { input: type<string>(), concurrency: 1 });
    expect(await codeOf(() => producer.enqueue(own, "x"))).toBe("not_permitted");
    await owner.sync([own]);
    expect((await (await producer.enqueue(own, "x")).status())?.state).toBe("ready");
  });

  test("cannot read internal tables or act as an operator", async () => {
    for (const secret of ["setting", "worker", "idempotency", "violation"])
      await refusedTo("producer", `select * from sluice.${secret}`);
    for (const attempt of [
      () => producer.counts(),
      () => producer.explainQueue("default"),
      () => producer.limits.list(),
      () => producer.pause("default"),
      () => producer.retry("1"),
      () => producer.unblock("1"),
    ])
      expect(await codeOf(attempt)).toBe("not_permitted");
  });
});

describe("a worker", () => {
  test("runs transactions, enqueues and retries of its handlers", async () => {
    const inputs = ["transaction", "enqueue", "fail once"];
    const handles = await Promise.all(inputs.map((input) => producer.enqueue(plain, input)));
    const results = await Promise.all(handles.map((h) => h.result({ timeoutMs: 20_000 })));
    expect(results).toEqual(inputs);
    expect(await (await worker.enqueue(ordered, "own")).result({ timeoutMs: 20_000 })).toBe("own");
  });

  test("runs maintenance, hands tasks back and unregisters", async () => {
    await realm.sql("worker", "select sluice.reap()");
    await realm.sql("worker", "select sluice.due(10)");
    await realm.sql("worker", "select sluice.keep_lanes(10)");
    await realm.sql("worker", "select sluice.prune_expired(10)");
    await until("old history to be pruned", async () => {
      // The keeper of the worker also prunes; this makes another turn due at once.
      await realm.sql("owner", "update sluice.sweep set turn_at = '-infinity'");
      const [row] = await realm.sql("worker", "select pruned from sluice.prune_done(0, 0, 0)");
      return Number(row!["pruned"]) > 0;
    });
    const second = worker.worker({ handlers: [unserved.handle(() => {})] });
    await second.start();
    await second.stop();
  });

  test("gives a type its own limit and cannot remove it", async () => {
    const own = task("given-by-worker", { input: type<string>(), concurrency: 2 });
    await worker.enqueue(own, "x");
    const gate = "select c.gate, l.id from sluice.contract c join sluice.limits l on l.name = c.type";
    const given = await realm.sql("owner", `${gate} where c.type = 'given-by-worker'`);
    expect(given).toMatchObject([{ gate: given[0]!["id"] }]);
    await refusedTo("worker", "select sluice.set_stream_gate('given-by-worker', 0)");
    await realm.sql("worker", "select sluice.give_stream_gate('given-by-worker')");
    expect(await realm.sql("owner", `${gate} where c.type = 'given-by-worker'`)).toEqual(given);
  });

  test("cannot change limits, pause a queue or read settings", async () => {
    for (const attempt of [
      () => worker.limits.set("mails", { total: 50 }),
      () => worker.sync([limit("mails", { total: 50 })]),
      () => worker.pause("default"),
      () => worker.counts(),
    ])
      expect(await codeOf(attempt)).toBe("not_permitted");
    await refusedTo("worker", "select * from sluice.setting");
    await refusedTo("worker", "update sluice.limits set total_override = 50");
    await refusedTo("worker", "delete from sluice.running");
  });

  test("logs no problem in these tests except the failed handler", () => {
    expect(trouble.lines).toEqual([expect.stringMatching(/^a task failed .*"once"/)]);
  });
});

describe("a reader", () => {
  test("inspects, explains, lists and counts", async () => {
    const handle = await producer.enqueue(unserved, "x");
    expect((await reader.task(handle.id).status())?.state).toBe("ready");
    expect((await reader.explain(handle.id))!.reasons).toMatchObject([{ kind: "noWorker" }]);
    expect((await reader.explainQueue("default")).reasons).not.toEqual([]);
    expect((await reader.counts()).ready).toBeGreaterThan(0);
    expect((await reader.limits.list()).map((l) => l.name)).toContain("mails");
    expect(await realm.sql("reader", "select * from sluice.violation")).toEqual([]);
    const rows = await realm.sql("reader", "select input from sluice.task where id = $1", [handle.id]);
    expect(rows).toEqual([{ input: "x" }]);
  });

  test("writes nothing", async () => {
    for (const attempt of [
      () => reader.enqueue(plain, "x"),
      () => reader.task("1").cancel(),
      () => reader.retry("1"),
      () => reader.pause("default"),
      () => reader.limits.set("mails", { total: 50 }),
      () => reader.worker({ handlers: [plain.handle((text) => text)] }).start(),
    ])
      expect(await codeOf(attempt)).toBe("not_permitted");
    const tables = await realm.sql(
      "owner",
      `select relname as name from pg_class where relnamespace = '"${realm.schema}"'::regnamespace and relkind = 'r'`,
    );
    expect(tables.length).toBeGreaterThan(20);
    for (const { name } of tables) {
      await refusedTo("reader", `delete from sluice.${String(name)}`);
      await refusedTo("reader", `insert into sluice.${String(name)} default values`);
    }
    await refusedTo("reader", "select nextval('sluice.task_id')");
    await refusedTo("reader", "select value from sluice.setting");
  });
});

describe("the owner", () => {
  test("changes limits, pauses, retries and syncs", async () => {
    await owner.limits.set("mails", { total: 7 });
    await owner.limits.set("mails", { total: "declared" });
    await owner.sync([mails, tenant, ordered]);
    await owner.pause("default");
    await owner.resume("default");
    const handle = await producer.enqueue(unserved, "again");
    await handle.cancel();
    expect(await owner.retry(handle.id)).toBe(true);
  });

  test("is not a superuser, and security definer functions run as the owner", async () => {
    const rows = await realm.sql(
      "owner",
      `select distinct r.rolsuper as super, p.proowner = n.nspowner as owns, p.proconfig::text like '%search_path=pg_catalog, pg_temp%' as pinned
       from pg_proc p join pg_roles r on r.oid = p.proowner join pg_namespace n on n.oid = p.pronamespace
       where n.nspname = '${realm.schema}' and p.prosecdef`,
    );
    expect(rows).toEqual([{ super: false, owns: true, pinned: true }]);
  });

  test("can have the rights granted again at any time", async () => {
    await realm.grant();
    const handle = await producer.enqueue(plain, "after");
    expect(await handle.result({ timeoutMs: 20_000 })).toBe("after");
  });
});

test("security definer functions ignore the search path of the caller", async () => {
  // A user who may create objects could define functions that shadow those of the system.
  await realm.sql("owner", "create schema if not exists decoy");
  await realm.sql("owner", "grant usage on schema decoy to public");
  await realm.sql(
    "owner",
    "create or replace function decoy.cardinality(json[]) returns int language plpgsql as $$ begin raise exception 'astray'; end $$",
  );
  await realm.sql("producer", "set search_path = decoy, pg_catalog");
  try {
    await expect(realm.sql("producer", "select cardinality(array['1'::json])")).rejects.toThrow("astray");
    await realm.sql("producer", `select sluice.enqueue('plain', '"x"')`);
  } finally {
    await realm.sql("producer", "reset search_path");
  }
});

test("a user without a role is refused with not_permitted on connect", async () => {
  expect(await codeOf(() => realm.connect("stranger"))).toBe("not_permitted");
  expect(await codeOf(() => realm.connect("stranger", { migrate: true }))).toBe("not_permitted");
});

test("sluice.enqueue can be granted to a user without any other right", async () => {
  const stranger = new URL(realm.url("stranger")).username;
  await realm.sql("owner", `grant usage on schema "${realm.schema}" to ${stranger}`);
  await realm.sql("owner", `grant execute on function sluice.enqueue to ${stranger}`);
  const client = new pg.Client(realm.url("stranger"));
  await client.connect();
  const enqueue = `select "${realm.schema}".enqueue('plain', '"x"')::text as id`;
  const { rows } = await client.query<{ id: string }>(enqueue);
  expect(await producer.task(rows[0]!.id).result({ timeoutMs: 20_000 })).toBe("x");
  const past = `select "${realm.schema}".enqueue_many(1, 0, 1, '1')`;
  await expect(client.query(past)).rejects.toMatchObject({ code: "42501" });
  await client.end();
});
