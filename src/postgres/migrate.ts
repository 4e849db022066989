import type pg from "pg";
import { SluiceError } from "../core/error.js";
import { checkSchemaName } from "../core/name.js";
import { sqlstate, toSluiceError } from "./errors.js";
import {
  changedRoutines,
  installRoutines,
  refuseForeign,
  retiredRoutines,
  retireRoutines,
  type Retired,
} from "./install.js";
import { applyOutside, type OutsideOptions } from "./outside.js";
import { becomeOwner } from "./rights.js";
import { schemaFiles, type Migration, type Routine, type SchemaFiles } from "./schema-files.js";
import { inSchema } from "./statement.js";
import { SCHEMA_VERSION } from "./version.js";

/** What a migration run found and did. */
export interface MigrateReport {
  readonly schema: string;
  readonly version: number;
  /** The migrations that were missing. */
  readonly applied: readonly string[];
  /** The functions and views whose text was new. */
  readonly installed: readonly string[];
}

interface Version {
  readonly version: number;
  readonly compatibleFrom: number;
}

// How long a migration waits for a table. Before it tries again, every session that queued behind it passes.
const LOCK_TIMEOUT = "2s";
const TRIES_MAX = 10;
const PAUSE_MS = 500;
// Another session holds a lock, or two sessions wait for each other.
const IN_THE_WAY = new Set(["55P03", "40P01"]);

/** beside: runs what a migration outside a transaction needs meanwhile. files, timing: replacements for tests. */
interface MigrateOptions extends Pick<OutsideOptions, "beside" | "timing"> {
  readonly schema?: string;
  readonly files?: SchemaFiles;
}

/**
 * Brings a schema up to date: applies the missing migrations, then installs the functions whose text differs, in one
 * transaction. Only a migration that must not run in a transaction is applied between two. Any number of processes may
 * call it at once: one applies, the others wait for it to end and find nothing left to do. No lock outlives a
 * transaction, so it works through a pooler too. A schema that is up to date is only read.
 */
export async function migrate(client: pg.ClientBase, options: MigrateOptions): Promise<MigrateReport> {
  const schema = checkSchemaName(options.schema ?? "sluice");
  const files = options.files ?? (await schemaFiles());
  const { beside, timing } = options;
  try {
    const applied: string[] = [];
    for (;;) {
      // Some migrator completes each stage, so there are no more rounds than stages.
      const missing = await outstanding(client, schema, files);
      if (!missing.isMissing) return { ...reportOf(schema, missing), applied };
      const [next] = missing.migrations;
      if (next !== undefined && next.outside !== null) {
        if (await applyOutside(client, next, { schema, beside, timing })) applied.push(next.name);
        continue;
      }
      const stage = await inLockedTransaction(client, schema, () => bringUpToDate(client, schema, files));
      applied.push(...stage.applied);
      if (stage.isLast) return { ...stage.report, applied };
    }
  } catch (e) {
    throw toSluiceError(e);
  }
}

/** What `migrate` would do. Changes nothing. */
export interface MigratePlan extends MigrateReport {
  readonly isMissing: boolean;
  /** The statements that would be sent, for people to read, without the rows that record what has been installed. */
  readonly sql: string;
}

export async function planMigrate(
  client: pg.ClientBase,
  options: Pick<MigrateOptions, "schema" | "files"> = {},
): Promise<MigratePlan> {
  const schema = checkSchemaName(options.schema ?? "sluice");
  const files = options.files ?? (await schemaFiles());
  try {
    const isNew = (await versionOf(client, schema)) === null;
    const missing = await outstanding(client, schema, files);
    const { migrations, routines, retired, isMissing } = missing;
    const texts = [
      ...(isNew ? [`create schema if not exists "${schema}";`, BOOKS] : []),
      ...migrations.map(({ name, sql, outside }) => (outside === null ? sql : `${noteOf(name)}${sql}`)),
      ...routines.map(({ sql }) => sql),
      ...retired
        .filter(({ isOver }) => isOver)
        .map(({ name, kind }) => `drop ${kind} if exists "${schema}"."${name}";`),
    ];
    const sql = inSchema(texts.join("\n"), schema);
    return { ...reportOf(schema, missing), isMissing, sql };
  } catch (e) {
    throw toSluiceError(e);
  }
}

function noteOf(name: string): string {
  return `-- ${name}: everything above is committed first; then each of these statements is sent on its own.\n`;
}

async function inLockedTransaction<T>(client: pg.ClientBase, schema: string, work: () => Promise<T>): Promise<T> {
  // A migrator that waited for the lock must see what its holder has committed.
  await client.query("begin isolation level read committed");
  try {
    // Wait as long as another migrator takes.
    await client.query("set local statement_timeout = 0; set local lock_timeout = 0");
    // guard: one migrates at a time -> test/client/connect.test.ts: "ten concurrent connects apply each migration once, and none fails"
    /* guard:one-at-a-time */ await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [
      `sluice migrate ${schema}`,
    ]); /* end */
    await becomeOwner(client, schema);
    const done = await inTries(client, work);
    await client.query("commit");
    return done;
  } catch (e) {
    await client.query("rollback").catch(() => {});
    throw e;
  }
}

/**
 * Releases tables that are in use, and tries again. The lock above stays, or the next migrator would take our place.
 */
async function inTries<T>(client: pg.ClientBase, work: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries++) {
    await client.query("savepoint migrate");
    try {
      await client.query(`set local lock_timeout = '${LOCK_TIMEOUT}'`);
      return await work();
    } catch (e) {
      if (!IN_THE_WAY.has(sqlstate(e) ?? "") || tries >= TRIES_MAX) throw e;
      await client.query("rollback to savepoint migrate");
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * (0.5 + Math.random())));
    }
  }
}

/** The work of one transaction. isLast: nothing is left to do. */
interface Stage {
  readonly applied: readonly string[];
  readonly isLast: boolean;
  readonly report: MigrateReport;
}

async function bringUpToDate(client: pg.ClientBase, schema: string, files: SchemaFiles): Promise<Stage> {
  if ((await versionOf(client, schema)) === null) {
    await refuseForeign(client, schema, files.routines);
    await client.query(`create schema if not exists "${schema}"`);
    await client.query(inSchema(BOOKS, schema));
  }
  const missing = await outstanding(client, schema, files);
  const { version, migrations } = missing;
  const report = reportOf(schema, missing);
  if (!missing.isMissing) return { applied: [], isLast: true, report };
  const outsideAt = migrations.findIndex(({ outside }) => outside !== null);
  const isLast = outsideAt === -1;
  const stage = isLast ? migrations : migrations.slice(0, outsideAt);
  for (const { number, name, digest, sql } of stage) {
    await client.query(inSchema(sql, schema));
    await client.query(inSchema(APPLIED, schema), [number, name, digest]);
  }
  const applied = stage.map(({ name }) => name);
  if (!isLast) return { applied, isLast, report };
  await installRoutines(client, schema, missing.routines);
  await retireRoutines(client, schema, { routines: files.routines, version });
  await client.query(inSchema("update sluice.compatibility set version = $1", schema), [version]);
  return { applied, isLast, report };
}

/** What a schema lacks. version: the schema's version once that is done. */
interface Outstanding {
  readonly version: number;
  readonly isMissing: boolean;
  readonly migrations: readonly Migration[];
  readonly routines: readonly Routine[];
  readonly retired: readonly Retired[];
}

function reportOf(
  schema: string,
  { version, migrations, routines }: Pick<Outstanding, "version" | "migrations" | "routines">,
): MigrateReport {
  const applied = migrations.map(({ name }) => name);
  return { schema, version, applied, installed: routines.map(({ name }) => name) };
}

async function outstanding(client: pg.ClientBase, schema: string, files: SchemaFiles): Promise<Outstanding> {
  const found = await versionOf(client, schema);
  const version = SCHEMA_VERSION;
  if (found === null) return { version, isMissing: true, ...files, retired: [] };
  refuseNewer(schema, found);
  const migrations = await missingMigrations(client, schema, files.migrations);
  // guard: an older library installs no functions -> test/postgres/migrate.test.ts: "migrate() of an older library leaves the functions of a newer one alone"
  if (found.version /* guard:older */ > SCHEMA_VERSION /* end */)
    return { version: found.version, isMissing: false, migrations: [], routines: [], retired: [] };
  const routines = await changedRoutines(client, schema, files.routines);
  const retired = await retiredRoutines(client, schema, { routines: files.routines, version });
  const nothing = migrations.length + routines.length + retired.length === 0;
  const isMissing = !nothing || found.version < version;
  return { version, isMissing, migrations, routines, retired };
}

async function missingMigrations(
  client: pg.ClientBase,
  schema: string,
  known: readonly Migration[],
): Promise<Migration[]> {
  const { rows } = await client.query<{ number: number; digest: string }>(
    inSchema("select number, digest from sluice.migration", schema),
  );
  const digests = new Map(rows.map(({ number, digest }) => [number, digest]));
  for (const { number, name, digest } of known) {
    // guard: an edited migration is refused -> test/postgres/migrate.test.ts: "a migration that was applied with another text is refused"
    if (/* guard:edited */ (digests.get(number) ?? digest) !== digest /* end */) throw edited(schema, name);
  }
  return known.filter(({ number }) => !digests.has(number));
}

function edited(schema: string, name: string): SluiceError {
  return new SluiceError(
    "schema_edited",
    `migration ${name} was applied to schema ${schema} with a text that differs from this library's: ` +
      "an unreleased version created the schema, or the file was edited. Restore the file, or recreate the schema",
    { details: { migration: name } },
  );
}

/** Rejects a schema that this library is not compatible with. */
export async function checkVersion(client: Pick<pg.ClientBase, "query">, schema: string): Promise<void> {
  const found = await versionOf(client, schema).catch((e: unknown) => {
    throw toSluiceError(e);
  });
  if (found === null) {
    throw new SluiceError("schema_missing", `schema ${schema} is missing: run sluice migrate first`);
  }
  if (found.version < SCHEMA_VERSION) {
    throw new SluiceError(
      "schema_older",
      `schema ${schema} is at version ${found.version}, but this library needs ${SCHEMA_VERSION}: run sluice migrate`,
    );
  }
  refuseNewer(schema, found);
}

async function versionOf(client: Pick<pg.ClientBase, "query">, schema: string): Promise<Version | null> {
  const there = await client.query(HAS_BOOKS, [schema]);
  if (there.rowCount === 0) return null;
  const text = 'select version, compatible_from as "compatibleFrom" from sluice.compatibility limit 1';
  const { rows } = await client.query(inSchema(text, schema));
  return rows[0] as Version;
}

function refuseNewer(schema: string, { version, compatibleFrom }: Version): void {
  if (compatibleFrom <= SCHEMA_VERSION) return;
  throw new SluiceError(
    "schema_newer",
    `schema ${schema} is at version ${version} and needs a library with schema version ${compatibleFrom} or later; ` +
      `this one has ${SCHEMA_VERSION}: upgrade the library`,
  );
}

// The schema's own records. version: of the newest library that has migrated it. compatible_from: of the oldest library
// that may work on it; a migration that breaks older ones raises it, the others allow a rolling deploy. gone_since: the
// first version without the function. migrator: one row, see lease.ts.
const BOOKS = `
  create table sluice.migration (
    number int primary key, name text not null, digest text not null, applied_at timestamptz not null default now()
  );
  create table sluice.compatibility (version int not null, compatible_from int not null);
  alter table sluice.compatibility replica identity full;
  insert into sluice.compatibility values (0, 1);
  create table sluice.installed (
    name text primary key, kind text not null, digest text not null, gone_since int
  );
  create table sluice.migrator (
    is_only boolean primary key default true check (is_only), holder text, expires_at timestamptz
  );
  insert into sluice.migrator default values;
`;

// Reads the catalog's tables. to_regclass() would read the session's cache, which misses a commit that the session
// waited for at an advisory lock.
const HAS_BOOKS = `
  select from pg_class c join pg_namespace n on n.oid = c.relnamespace
  where n.nspname = $1 and c.relname = 'compatibility'`;

const APPLIED = "insert into sluice.migration (number, name, digest) values ($1, $2, $3)";
