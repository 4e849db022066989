import pg from "pg";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { migrate, planMigrate, type MigrateReport } from "../../src/postgres/migrate.js";
import type { OutsideTiming } from "../../src/postgres/outside.js";
import { migrationOf, schemaFiles, type SchemaFiles } from "../../src/postgres/schema-files.js";
import { findPgBouncer, startPooler } from "../pgbouncer/pgbouncer.js";
import { connected, freshDatabase, type TestDatabase } from "../support/database.js";

const patient: OutsideTiming = { leaseMs: 5_000, pollMs: 20, lockWaitMs: 60_000 };

let database: TestDatabase;
let client: pg.Client;
let opened: pg.Client[];
let indexed: SchemaFiles;

beforeEach(async () => {
  opened = [];
  database = await freshDatabase({ migrated: true });
  client = await open();
  indexed = await withMigrations({
    "9001_table": "create table sluice.extra (n int); insert into sluice.extra select generate_series(1, 100);",
    "9002_index": "-- outside a transaction\ncreate index concurrently if not exists extra_n on sluice.extra (n);\n",
    "9003_column": "alter table sluice.extra add column after_index boolean not null default true;",
  });
});
afterEach(async () => {
  await Promise.all(opened.map((session) => session.end()));
  await database.drop();
});

async function open(url = database.url): Promise<pg.Client> {
  const session = new pg.Client(url);
  session.on("error", () => {});
  await session.connect();
  opened.push(session);
  return session;
}

async function withMigrations(added: Record<string, string>): Promise<SchemaFiles> {
  const { migrations, routines } = await schemaFiles();
  const more = Object.entries(added).map(([name, sql]) => migrationOf(name, sql));
  return { migrations: [...migrations, ...more], routines };
}

function run(session: pg.Client, files = indexed, timing = patient, url = database.url): Promise<MigrateReport> {
  return migrate(session, { files, timing, beside: (use) => connected(url, use) });
}

async function one<T>(text: string): Promise<T> {
  const { rows } = await client.query({ text, rowMode: "array" });
  return (rows as unknown[][])[0]?.[0] as T;
}

const VALID = "select indisvalid from pg_index where indexrelid = to_regclass('sluice.extra_n')";
const BUILDING = `select count(*)::int from pg_stat_activity where datname = current_database()
  and pid <> pg_backend_pid() and state = 'active' and query ~ 'sluice migrator .* (create|drop) index'`;
const WAITING = `${BUILDING} and wait_event_type = 'Lock'`;
const HOLDER = "select holder from sluice.migrator";

/** A foreign transaction that has written to the table, so that CREATE INDEX CONCURRENTLY waits for it. */
async function inTheWay(): Promise<pg.Client> {
  await run(client, { ...indexed, migrations: indexed.migrations.slice(0, -2) });
  const other = await open();
  await other.query("begin");
  await other.query("insert into sluice.extra values (0)");
  return other;
}

const names = ["9001_table", "9002_index", "9003_column"];

test("migrations inside and outside transactions are applied in order", async () => {
  expect((await run(client)).applied).toEqual(names);
  expect(await one(VALID)).toBe(true);
  const order = "select array_agg(name order by applied_at) from sluice.migration where number > 9000";
  expect(await one(order)).toEqual(names);
  expect(await one(HOLDER)).toBeNull();
  expect((await run(client)).applied).toEqual([]);
});

test("a new schema is created with migrations outside transactions too", async () => {
  const beside = <T>(use: (client: pg.Client) => Promise<T>): Promise<T> => connected(database.url, use);
  const options = { schema: "another", files: indexed, beside };
  const reports = await Promise.all([migrate(await open(), options), migrate(await open(), options)]);
  expect(reports.flatMap(({ applied }) => applied).toSorted()).toEqual(indexed.migrations.map(({ name }) => name));
  expect(await one("select to_regclass('another.extra_n') is not null")).toBe(true);
  expect(await one("select version from another.compatibility")).toBe(reports[0].version);
});

test("functions are installed after the last migration, also if it runs outside a transaction", async () => {
  const files = { ...indexed, migrations: indexed.migrations.slice(0, -1) };
  const other = await inTheWay();
  await client.query("update sluice.installed set digest = '' where name = 'ring'");
  const done = run(await open(), files);
  await expect.poll(() => one(WAITING)).toBe(1);
  expect(await one("select digest from sluice.installed where name = 'ring'")).toBe("");
  await other.query("commit");
  expect(await done).toMatchObject({ applied: ["9002_index"], installed: ["ring"] });
});

test("the plan names a migration outside a transaction", async () => {
  const { sql, applied } = await planMigrate(client, { files: indexed });
  expect(applied).toEqual(names);
  expect(sql).toContain("-- 9002_index: everything above is committed first; then each of these statements is sent");
  expect(sql).toContain('create index concurrently if not exists extra_n on "sluice".extra (n);');
});

test("one of two concurrent migrators runs a migration outside a transaction", async () => {
  const files = await withMigrations({
    "9001_table": "create table sluice.tries (n int);",
    "9002_slow": "-- outside a transaction\ninsert into sluice.tries values (1);\nselect pg_sleep(1);\n",
  });
  const reports = await Promise.all([open(), open(), open()].map(async (session) => run(await session, files)));
  expect(await one("select count(*)::int from sluice.tries")).toBe(1);
  expect(reports.flatMap(({ applied }) => applied)).toHaveLength(2);
});

test("a long foreign transaction delays an index build, and the lease is renewed meanwhile", async () => {
  const other = await inTheWay();
  const timing = { ...patient, leaseMs: 500 };
  const first = run(await open(), indexed, timing);
  await expect.poll(() => one(WAITING)).toBe(1);
  const holder = await one(HOLDER);
  const second = run(await open(), indexed, timing);
  await new Promise((resolve) => setTimeout(resolve, 1_500));
  expect(await one(HOLDER)).toBe(holder);
  expect(await one(BUILDING)).toBe(1);
  await other.query("commit");
  // The migrator that gets the lock of the next transaction first applies the migrations after the index.
  const reports = [await first, await second];
  expect(reports[0]!.applied).toContain("9002_index");
  expect(reports.flatMap(({ applied }) => applied).toSorted()).toEqual(["9002_index", "9003_column"]);
  expect(await one(VALID)).toBe(true);
});

test("an index build that waits too long for a lock is abandoned, and succeeds in a later try", async () => {
  const other = await inTheWay();
  const done = run(await open(), indexed, { leaseMs: 1_000, pollMs: 200, lockWaitMs: 500 });
  await expect.poll(() => one(VALID)).toBe(false);
  await expect.poll(() => one(WAITING)).toBe(0);
  await other.query("commit");
  expect((await done).applied).toEqual(["9002_index", "9003_column"]);
  expect(await one(VALID)).toBe(true);
});

test("a migrator that never gets its locks fails with database_busy and leaves the lease", async () => {
  await inTheWay();
  const timing = { leaseMs: 500, pollMs: 10, lockWaitMs: 50 };
  await expect(run(await open(), indexed, timing)).rejects.toMatchObject({ code: "database_busy" });
  expect(await one(HOLDER)).toBeNull();
  expect(await one("select count(*)::int from sluice.migration where number = 9002")).toBe(0);
});

test("an index build that a statement_timeout cancels is not retried, and the error says what to do", async () => {
  await inTheWay();
  const session = await open();
  await session.query("set statement_timeout = '300ms'");
  const refused = expect(run(session)).rejects;
  await refused.toMatchObject({ code: "database_busy", details: { statementTimeoutMs: 300 } });
  expect(await one(HOLDER)).toBeNull();
});

/** Ends the session of a migrator in the middle of its index. */
async function cutOff(): Promise<void> {
  const other = await inTheWay();
  const cut = run(await open());
  cut.catch(() => {});
  await expect.poll(() => one(WAITING)).toBe(1);
  await client.query(`select pg_terminate_backend(pid) from (${BUILDING.replace("count(*)::int", "pid")}) as x`);
  await expect(cut).rejects.toMatchObject({ code: "database_unavailable" });
  await other.query("commit");
  expect(await one(VALID)).toBe(false);
}

test("an index whose build was interrupted is built again by the next migrator", async () => {
  await cutOff();
  expect(await one(HOLDER)).toBeNull();
  expect((await run(client)).applied).toEqual(["9002_index", "9003_column"]);
  expect(await one(VALID)).toBe(true);
});

test("an index that the server still builds after its migrator was killed is waited for, not dropped", async () => {
  const other = await inTheWay();
  const orphan = await open();
  const built = orphan.query("create index concurrently extra_n on sluice.extra (n)");
  await expect.poll(() => one(VALID)).toBe(false);
  const oid = await one("select 'sluice.extra_n'::regclass::oid");
  const next = run(await open());
  await expect.poll(() => one(HOLDER)).not.toBeNull();
  await other.query("commit");
  await built;
  expect((await next).applied).toEqual(["9002_index", "9003_column"]);
  expect(await one("select 'sluice.extra_n'::regclass::oid")).toBe(oid);
});

test("the lease of a dead migrator is taken over when it has expired", async () => {
  const take = "update sluice.migrator set holder = 'gone', expires_at = clock_timestamp() + interval '700 ms'";
  await client.query(take);
  const begunAt = Date.now();
  expect((await run(await open())).applied).toEqual(names);
  expect(Date.now() - begunAt).toBeGreaterThan(500);
});

describe.skipIf(findPgBouncer() === undefined)("migrations through PgBouncer in transaction mode", () => {
  test("an index is built beside a waiting migrator, and an interrupted build is repeated", async () => {
    await cutOff();
    const pooler = await startPooler(database.url);
    try {
      const url = pooler.through(database.url);
      const other = await open();
      await other.query("begin");
      await other.query("insert into sluice.extra values (0)");
      const migrators = [await open(url), await open(url)].map((session) => run(session, indexed, patient, url));
      await expect.poll(() => one(BUILDING)).toBe(1);
      await other.query("commit");
      const reports = await Promise.all(migrators);
      expect(reports.flatMap(({ applied }) => applied).toSorted()).toEqual(["9002_index", "9003_column"]);
      expect(await one(VALID)).toBe(true);
    } finally {
      await Promise.all(opened.splice(1).map((session) => session.end()));
      await pooler.stop();
    }
  });
});
