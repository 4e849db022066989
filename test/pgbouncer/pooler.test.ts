// Behaviour specific to a pooler. The vitest.config.ts in this folder runs all other tests through it.
import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Sluice, task, type, type ConnectOptions } from "../../src/index.js";
import { silentLogger } from "../../src/core/ports.js";
import { codeOf } from "../client/house.js";
import { until } from "../flow/scene.js";
import { freshDatabase, type TestDatabase } from "../support/database.js";
import { findPgBouncer, startPooler, type Pooler } from "./pgbouncer.js";

const installed = findPgBouncer() !== undefined;
const echo = task("echo", { input: type<string>(), output: type<string>() });
let database: TestDatabase;
let closing: (() => Promise<unknown>)[];

beforeEach(async () => {
  closing = [];
  database = await freshDatabase({ migrated: true });
});
afterEach(async () => {
  for (const close of closing.toReversed()) await close();
  await database.drop();
});

async function pooler(settings: Parameters<typeof startPooler>[1] = {}): Promise<Pooler> {
  const started = await startPooler(database.url, settings);
  closing.push(() => started.stop());
  return started;
}

async function connect(url: string, options: ConnectOptions = {}): Promise<Sluice> {
  const sluice = await Sluice.connect({ url, logger: silentLogger, ...options });
  closing.push(() => sluice.close());
  return sluice;
}

async function session(url: string): Promise<pg.Client> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  closing.push(() => client.end());
  return client;
}

async function work(sluice: Sluice): Promise<void> {
  const handlers = [echo.handle((text, ctx) => ctx.transaction(async () => text))];
  await sluice.worker({ handlers, pollIntervalMs: 20, leaseMs: 2_000 }).start();
}

test("PgBouncer is installed wherever it is required", () => {
  expect(installed || process.env["CI"] === undefined, "CI needs pgbouncer").toBe(true);
});

describe.skipIf(!installed)("through PgBouncer in transaction mode", () => {
  test("a task exists if and only if the transaction that enqueued it commits", async () => {
    const url = (await pooler()).through(database.url);
    const sluice = await connect(url, { prepare: false, listen: false });
    const client = await session(url);
    await client.query("begin");
    await sluice.enqueue(echo, "rolled back", { tx: client });
    await client.query("rollback");
    await client.query("begin");
    const handle = await sluice.enqueue(echo, "committed", { tx: client });
    expect(await sluice.counts()).toMatchObject({ ready: 0 });
    await client.query("commit");
    expect(await sluice.counts()).toMatchObject({ ready: 1 });
    await work(sluice);
    expect(await handle.result({ timeoutMs: 20_000 })).toBe("committed");
  });

  test("client and worker work over a single server connection", async () => {
    const url = (await pooler({ default_pool_size: 1 })).through(database.url);
    const sluice = await connect(url, { prepare: false, listenUrl: database.url });
    await work(sluice);
    const handles = await Promise.all(["a", "b", "c"].map((text) => sluice.enqueue(echo, text)));
    const results = await Promise.all(handles.map((h) => h.result({ timeoutMs: 20_000 })));
    expect(results).toEqual(["a", "b", "c"]);
  });

  test("a LISTEN through the pooler loses only the wake-up hints", async () => {
    const url = (await pooler()).through(database.url);
    const sluice = await connect(url, { prepare: false });
    await work(sluice);
    for (const text of ["a", "b", "c"])
      expect(await (await sluice.enqueue(echo, text)).result({ timeoutMs: 20_000 })).toBe(text);
  });

  test("client and worker leave no lock, setting, statement or cursor on a server connection", async () => {
    const url = (await pooler({ default_pool_size: 1 })).through(database.url);
    const client = await session(url);
    const left = async (): Promise<unknown[]> => {
      const { rows } = await client.query(`
        select 'lock' as what, locktype as name from pg_locks where pid = pg_backend_pid() and locktype not in ('relation', 'virtualxid')
        union all select 'setting', name || '=' || setting from pg_settings where source = 'session'
        union all select 'statement', name from pg_prepared_statements where name <> ''
        union all select 'cursor', name from pg_cursors where name <> ''
        union all select 'channel', c from pg_listening_channels() c
        union all select 'table', relname from pg_class where relpersistence = 't' order by 1, 2`);
      return rows;
    };
    const before = await left();
    const sluice = await connect(url, { prepare: false, listenUrl: database.url });
    await work(sluice);
    const handle = await sluice.enqueue(echo, "x", { idempotencyKey: "k" });
    await handle.result({ timeoutMs: 20_000 });
    await sluice.close();
    expect(await left()).toEqual(before);
  });

  test("named statements fail with an error that says to set prepare: false", async () => {
    const url = (await pooler()).through(database.url);
    const sluice = await connect(url, { listen: false, apiConnections: 1 });
    await sluice.counts();
    // The only connection that knows the statement now belongs to another client.
    const client = await session(url);
    await client.query("begin");
    await expect(sluice.counts()).rejects.toMatchObject({
      code: "prepare_unsupported",
      message: expect.stringContaining("connect with prepare: false") as string,
    });
    await client.query("rollback");
  });

  test("named statements of two clients on one server connection fail with the same error", async () => {
    const url = (await pooler({ default_pool_size: 1 })).through(database.url);
    const [one, two] = [await connect(url, { listen: false }), await connect(url, { listen: false })];
    await one.counts();
    expect(await codeOf(() => two.counts())).toBe("prepare_unsupported");
  });

  test("work resumes by itself after a restart of PgBouncer", async () => {
    const first = await startPooler(database.url);
    const sluice = await connect(first.through(database.url), { prepare: false, listen: false });
    await work(sluice);
    const before = await sluice.enqueue(echo, "before");
    expect(await before.result({ timeoutMs: 20_000 })).toBe("before");
    await first.stop();
    expect(await codeOf(() => sluice.enqueue(echo, "meanwhile"))).toBe("database_unavailable");
    await pooler({ port: first.port });
    const after = await until("enqueue to work again", () => sluice.enqueue(echo, "after").catch(() => null));
    expect(await after.result({ timeoutMs: 20_000 })).toBe("after");
  });
});
