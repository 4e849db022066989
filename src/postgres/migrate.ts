import { createHash } from "node:crypto";
import { readdir, readFile } from "node:fs/promises";
import type pg from "pg";
import { SluiceError } from "../core/error.js";
import { checkSchemaName } from "../core/name.js";
import { toSluiceError } from "./fault.js";
import { inSchema } from "./statement.js";
import { SCHEMA_VERSION } from "./version.js";

interface Migration {
  readonly number: number;
  readonly name: string;
  readonly sql: string;
  readonly digest: string;
}

/** What a migration run found and did. */
export interface MigrateReport {
  readonly schema: string;
  readonly applied: readonly string[];
  readonly version: number;
}

/**
 * Brings a schema up to date. Any number of processes may call it at once: one applies, the others
 * wait for its commit and find nothing left to do. A transaction-level advisory lock, so it works
 * through a pooler too.
 */
export async function migrate(
  client: pg.ClientBase,
  options: { readonly schema?: string } = {},
): Promise<MigrateReport> {
  const schema = checkSchemaName(options.schema ?? "sluice");
  const known = await migrations();
  await client.query("begin");
  try {
    // guard: one migrates at a time -> test/client/connect.test.ts: "ten connections at once: one applies, none fails"
    await client.query("select pg_advisory_xact_lock(hashtextextended($1, 0))", [
      `sluice migrate ${schema}`,
    ]);
    const applied = await applyMissing(client, schema, known);
    await client.query("commit");
    return { schema, applied, version: known.at(-1)?.number ?? 0 };
  } catch (e) {
    await client.query("rollback").catch(() => {});
    throw toSluiceError(e);
  }
}

/** Refuses to work on a schema that this library does not fit. */
export async function checkVersion(
  client: Pick<pg.ClientBase, "query">,
  schema: string,
): Promise<void> {
  const known = SCHEMA_VERSION;
  const found = await versionOf(client, schema).catch((e: unknown) => {
    throw toSluiceError(e);
  });
  if (found === null) {
    throw new SluiceError(
      "schema_missing",
      `schema ${schema} is missing: run the migrations first`,
    );
  }
  if (found.number < known) {
    throw new SluiceError(
      "schema_older",
      `schema ${schema} is at ${found.number}, this library needs ${known}: run the migrations`,
    );
  }
  refuseNewer(schema, found, known);
}

async function applyMissing(
  client: pg.ClientBase,
  schema: string,
  known: readonly Migration[],
): Promise<string[]> {
  const found = await versionOf(client, schema);
  const last = known.at(-1)?.number ?? 0;
  if (found !== null && found.number >= last) {
    refuseNewer(schema, found, last);
    return [];
  }
  if (found === null) {
    await client.query(`create schema if not exists "${schema}"`);
    await client.query(inSchema(CREATE, schema));
  }
  const missing = known.filter((m) => m.number > (found?.number ?? 0));
  for (const m of missing) {
    await client.query(inSchema(m.sql, schema));
    await client.query(
      inSchema("insert into sluice.migration (number, name, digest) values ($1, $2, $3)", schema),
      [m.number, m.name, m.digest],
    );
  }
  return missing.map((m) => m.name);
}

// compatible_from: the oldest library that may work on this schema. A migration that breaks older
// libraries raises it; the others let a rolling deploy go on.
const CREATE = `
  create table sluice.migration (
    number int primary key, name text not null, digest text not null, applied_at timestamptz not null default now()
  );
  create table sluice.compatibility (compatible_from int not null);
  alter table sluice.compatibility replica identity full;
  insert into sluice.compatibility values (1);
`;

interface Version {
  readonly number: number;
  readonly compatibleFrom: number;
}

async function versionOf(
  client: Pick<pg.ClientBase, "query">,
  schema: string,
): Promise<Version | null> {
  const there = await client.query("select to_regclass($1) is not null as there", [
    `"${schema}".migration`,
  ]);
  if (there.rows[0]?.there !== true) return null;
  const { rows } = await client.query(
    inSchema(
      'select coalesce(max(number), 0) as number, (select compatible_from from sluice.compatibility) as "compatibleFrom" from sluice.migration',
      schema,
    ),
  );
  return rows[0] as Version;
}

function refuseNewer(schema: string, found: Version, known: number): void {
  if (found.compatibleFrom <= known) return;
  throw new SluiceError(
    "schema_newer",
    `schema ${schema} is at ${found.number} and needs a library of at least ${found.compatibleFrom}; this one knows ${known}`,
  );
}

async function migrations(): Promise<readonly Migration[]> {
  const { folder, files } = await migrationFiles();
  return Promise.all(
    files.map(async (file) => {
      const sql = await readFile(new URL(file, folder), "utf8");
      const digest = createHash("sha256").update(sql).digest("hex");
      return { number: Number(file.slice(0, 4)), name: file.slice(0, -4), sql, digest };
    }),
  );
}

/** Looked for only when they are needed: a bundle has none beside it, and one in CommonJS does not know where it is. */
async function migrationFiles(): Promise<{ folder: URL; files: string[] }> {
  try {
    const folder = new URL("./migrations/", import.meta.url);
    const files = (await readdir(folder)).filter((f) => /^\d{4}_.*\.sql$/.test(f)).toSorted();
    if (files.length > 0) return { folder, files };
  } catch (e) {
    throw noMigrations(e);
  }
  throw noMigrations();
}

function noMigrations(cause?: unknown): SluiceError {
  return new SluiceError(
    "invalid_option",
    "the migrations are not beside the code, as in a bundle: run `npx sluice migrate` at your " +
      "deploy, and connect with migrate: false",
    { ...(cause === undefined ? {} : { cause }), details: { option: "migrate" } },
  );
}
