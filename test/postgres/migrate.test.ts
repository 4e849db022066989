import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { migrate as migrateSchema, planMigrate, type MigrateReport } from "../../src/postgres/migrate.js";
import { schemaFiles } from "../../src/postgres/schema-files.js";
import { SCHEMA_VERSION } from "../../src/postgres/version.js";
import { connected, freshDatabase, type TestDatabase } from "../support/database.js";

let database: TestDatabase;
let client: pg.Client;
const opened: pg.Client[] = [];

async function open(): Promise<pg.Client> {
  const session = new pg.Client(database.url);
  await session.connect();
  opened.push(session);
  return session;
}

function migrate(session: pg.Client, options: { schema?: string } = {}): Promise<MigrateReport> {
  return migrateSchema(session, { ...options, beside: (use) => connected(database.url, use) });
}

beforeEach(async () => {
  database = await freshDatabase({ migrated: true });
  client = await open();
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((session) => session.end()));
  await database.drop();
});

async function one<T>(text: string, values: unknown[] = []): Promise<T> {
  const { rows } = await client.query({ text, values, rowMode: "array" });
  return (rows as unknown[][])[0]?.[0] as T;
}

/** Makes the installed text of a function differ from the file. */
async function makeDiffer(name: string, edit: (text: string) => string): Promise<string> {
  const original = await one<string>("select pg_get_functiondef($1::regproc)", [`sluice.${name}`]);
  const other = edit(original);
  expect(other).not.toBe(original);
  await client.query(other);
  await client.query("update sluice.installed set digest = 'of another text' where name = $1", [name]);
  return original;
}

const refusing = (text: string): string => text.replace("begin", "begin raise exception 'old';");

test("migrate() leaves a current schema unchanged", async () => {
  const report = { schema: "sluice", version: SCHEMA_VERSION, applied: [], installed: [] };
  expect(await migrate(client)).toEqual(report);
});

test("migrate() installs a function whose text differs, and no other", async () => {
  const original = await makeDiffer("ring", refusing);
  expect((await migrate(client)).installed).toEqual(["ring"]);
  expect(await one("select pg_get_functiondef('sluice.ring'::regproc)")).toBe(original);
  expect((await migrate(client)).installed).toEqual([]);
});

test("migrate() of an older library leaves the functions of a newer one alone", async () => {
  await client.query("update sluice.compatibility set version = $1", [SCHEMA_VERSION + 1]);
  await makeDiffer("ring", refusing);
  const { version, installed } = await migrate(client);
  expect({ version, installed }).toEqual({ version: SCHEMA_VERSION + 1, installed: [] });
  expect(await one("select pg_get_functiondef('sluice.ring'::regproc)")).toContain("'old'");
});

test("functions that run as the owner still do after they were replaced", async () => {
  await client.query("alter function sluice.ring(int[], int) security definer set search_path = pg_catalog, pg_temp");
  await client.query("update sluice.installed set digest = '' where name = 'ring'");
  await migrate(client);
  const { rows } = await client.query("select prosecdef, proconfig from pg_proc where oid = 'sluice.ring'::regproc");
  expect(rows).toEqual([{ prosecdef: true, proconfig: ["search_path=pg_catalog, pg_temp"] }]);
});

describe("a function that the library no longer has", () => {
  beforeEach(async () => {
    await client.query("create function sluice.retired() returns int language sql as 'select 1'");
    await client.query("insert into sluice.installed values ('retired', 'function', '')");
  });

  const exists = (): Promise<boolean> => one("select to_regproc('sluice.retired') is not null");

  test("a retired function stays while a library that calls it may use the schema", async () => {
    await client.query("update sluice.compatibility set compatible_from = $1", [SCHEMA_VERSION - 1]);
    await migrate(client);
    expect(await exists()).toBe(true);
    const since = "select gone_since from sluice.installed where name = 'retired'";
    expect(await one(since)).toBe(SCHEMA_VERSION);
  });

  test("a retired function is dropped once no such library may use the schema", async () => {
    await endCompatibility();
    await migrate(client);
    expect(await exists()).toBe(false);
    expect(await one("select count(*)::int from sluice.installed where name = 'retired'")).toBe(0);
  });
});

/** From now on only libraries of this version may use the schema. */
async function endCompatibility(): Promise<void> {
  await client.query("update sluice.compatibility set compatible_from = $1", [SCHEMA_VERSION]);
}

test("a function that returns with its old text is not dropped", async () => {
  await client.query("update sluice.installed set gone_since = 1 where name = 'ring'");
  expect((await migrate(client)).installed).toEqual(["ring"]);
  expect(await one("select to_regproc('sluice.ring') is not null")).toBe(true);
  const since = "select gone_since from sluice.installed where name = 'ring'";
  expect(await one(since)).toBeNull();
});

test("a function that was dropped by hand is installed again", async () => {
  await client.query("drop function sluice.ring");
  expect((await migrate(client)).installed).toEqual(["ring"]);
});

test("a retired function that something depends on stays, and the migration continues", async () => {
  await client.query("create function sluice.retired() returns int language sql as 'select 1'");
  await client.query("create view public.of_a_user as select sluice.retired() as n");
  await client.query("insert into sluice.installed values ('retired', 'function', '')");
  await endCompatibility();
  await makeDiffer("ring", refusing);
  expect((await migrate(client)).installed).toEqual(["ring"]);
  expect(await one("select n from public.of_a_user")).toBe(1);
  await client.query("drop view public.of_a_user");
  await migrate(client);
  expect(await one("select to_regproc('sluice.retired') is null")).toBe(true);
});

test("a foreign schema with functions of our names is left alone", async () => {
  await client.query("create schema shop");
  await client.query("create function shop.ring() returns int language sql as 'select 7'");
  await expect(migrate(client, { schema: "shop" })).rejects.toMatchObject({
    code: "invalid_option",
    details: { functions: ["ring"] },
  });
  expect(await one("select shop.ring()")).toBe(7);
});

test("foreign functions with two overloads do not make a schema refused", async () => {
  await client.query("create function sluice.theirs(int) returns int language sql as 'select 1'");
  await client.query("create function sluice.theirs(text) returns int language sql as 'select 2'");
  await makeDiffer("ring", refusing);
  expect((await migrate(client)).installed).toEqual(["ring"]);
});

test("a schema with only an older version number counts as incomplete", async () => {
  await client.query("update sluice.compatibility set version = $1", [SCHEMA_VERSION - 1]);
  expect(await planMigrate(client)).toMatchObject({ isMissing: true, applied: [], installed: [] });
  await migrate(client);
  expect(await planMigrate(client)).toMatchObject({ isMissing: false });
});

test("migrate() only reads a current schema, also in a read-only session", async () => {
  await client.query("set default_transaction_read_only = on");
  expect((await migrate(client)).version).toBe(SCHEMA_VERSION);
});

test("a migration that was applied with another text is refused", async () => {
  await client.query("update sluice.migration set digest = 'of another text' where number = 1");
  await expect(migrate(client)).rejects.toMatchObject({
    code: "schema_edited",
    details: { migration: "0001_tables" },
  });
});

test("a second function of one name is refused, and nothing is changed", async () => {
  await client.query("create function sluice.refuse(p_other text) returns void language sql as 'select'");
  await makeDiffer("ring", refusing);
  await client.query("update sluice.installed set digest = '' where name = 'refuse'");
  await expect(migrate(client)).rejects.toMatchObject({
    code: "schema_edited",
    details: { functions: ["refuse"] },
  });
  expect(await one("select pg_get_functiondef('sluice.ring'::regproc)")).toContain("'old'");
});

test("a migrator that waited for another one sees the schema that the other has created", async () => {
  const [first, second] = [await open(), await open()];
  const lock = "hashtextextended('sluice migrate other', 0)";
  // A server that makes a whole schema forgets what it has cached. A rename leaves the second session's cache as it is.
  await migrate(first, { schema: "prepared" });
  await first.query(`select pg_advisory_lock(${lock})`);
  const waiting = migrate(second, { schema: "other" });
  await expect.poll(() => one(LOCK_WAITS), { timeout: 10_000 }).toBe(1);
  await first.query("alter schema prepared rename to other");
  await first.query(`select pg_advisory_unlock(${lock})`);
  expect(await waiting).toMatchObject({ applied: [], installed: [] });
});

const LOCK_WAITS = `select count(*)::int from pg_stat_activity
  where wait_event_type = 'Lock' and datname = current_database()`;

test("a migration releases its locks and retries while another session blocks it", async () => {
  await makeDiffer("ring", refusing);
  const other = await open();
  await other.query("begin");
  await other.query("alter function sluice.ring(int[], int) cost 200");
  const done = migrate(await open());
  await expect.poll(() => one(LOCK_WAITS), { timeout: 10_000 }).toBe(1);
  await expect.poll(() => one(LOCK_WAITS), { timeout: 10_000 }).toBe(0);
  await other.query("rollback");
  expect((await done).installed).toEqual(["ring"]);
});

test("every SQL file contains the function it is named after, and every name is unique", async () => {
  const { routines } = await schemaFiles();
  const wrong = routines.filter(({ name, kind, sql }) => !sql.includes(`create or replace ${kind} sluice.${name}`));
  expect(wrong.map(({ name }) => name)).toEqual([]);
  expect(new Set(routines.map(({ name }) => name)).size).toBe(routines.length);
});
