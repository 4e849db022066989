import type pg from "pg";
import { SluiceError } from "../core/error.js";
import type { Routine } from "./schema-files.js";
import { inSchema } from "./statement.js";

interface Installed {
  readonly name: string;
  readonly digest: string;
}

/** The functions and views whose text differs from what the database has. */
export async function changedRoutines(
  client: pg.ClientBase,
  schema: string,
  routines: readonly Routine[],
): Promise<Routine[]> {
  const { rows } = await client.query<Installed>(
    inSchema("select name, digest from sluice.installed", schema),
  );
  const digests = new Map(rows.map(({ name, digest }) => [name, digest]));
  return routines.filter(({ name, digest }) => digests.get(name) !== digest);
}

/** Installs functions and views, in the transaction of the migrations. */
export async function installRoutines(
  client: pg.ClientBase,
  schema: string,
  changed: readonly Routine[],
): Promise<void> {
  if (changed.length === 0) return;
  const names = changed.map(({ name }) => name);
  const guarded = await client.query<{ restore: string }>(GUARDED, [schema, names]);
  // A function may call one that comes after it.
  await client.query("set local check_function_bodies = off");
  await client.query(inSchema(changed.map(({ sql }) => sql).join("\n"), schema));
  // guard: replaced functions keep the rights of their callers -> test/postgres/migrate.test.ts: "functions that run as the owner still do after they were replaced"
  for (const { restore } of guarded.rows) await client.query(restore);
  await client.query(inSchema(RECORD, schema), [
    names,
    changed.map(({ kind }) => kind),
    changed.map(({ digest }) => digest),
  ]);
  await refuseOverloads(client, schema);
}

/** Drops the functions and views that no library that may work on the schema has. version: of this library. */
export async function retireRoutines(
  client: pg.ClientBase,
  schema: string,
  { routines, version }: { readonly routines: readonly Routine[]; readonly version: number },
): Promise<void> {
  await client.query(inSchema(RETIRE, schema), [routines.map(({ name }) => name), version]);
  const { rows } = await client.query<{ name: string; kind: string }>(inSchema(RETIRED, schema));
  for (const { name, kind } of rows) {
    await client.query(`drop ${kind} if exists "${schema}"."${name}"`);
    await client.query(inSchema("delete from sluice.installed where name = $1", schema), [name]);
  }
}

/** A changed parameter makes a second function beside the old one, and calls would be ambiguous. */
async function refuseOverloads(client: pg.ClientBase, schema: string): Promise<void> {
  const { rows } = await client.query<{ name: string }>(OVERLOADED, [schema]);
  if (rows.length === 0) return;
  const names = rows.map(({ name }) => name).join(", ");
  throw new SluiceError(
    "schema_edited",
    `schema ${schema} has two functions of one name: ${names}. A function whose parameters change needs a new name`,
    { details: { functions: rows.map(({ name }) => name) } },
  );
}

// roles.sql lets functions run as their owner with a fixed search path. To replace a function resets both.
const GUARDED = `
  select format('alter function %s security definer%s', p.oid::regprocedure,
    coalesce((select ' set search_path = ' || substr(c, length('search_path=') + 1)
      from unnest(p.proconfig) c where c like 'search_path=%'), '')) as restore
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = $1 and p.proname = any ($2::text[]) and p.prosecdef`;

const OVERLOADED = `
  select p.proname::text as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = $1 group by p.proname having count(*) > 1 order by 1`;

const RECORD = `
  insert into sluice.installed (name, kind, digest)
  select * from unnest($1::text[], $2::text[], $3::text[])
  on conflict (name) do update set kind = excluded.kind, digest = excluded.digest, gone_since = null`;

// A library before this version may still call what is gone, while compatible_from lets it work.
const RETIRE = `
  update sluice.installed set gone_since = $2::int where gone_since is null and name <> all ($1::text[])`;

const RETIRED = `
  select i.name, i.kind from sluice.installed i, sluice.compatibility c where i.gone_since <= c.compatible_from
  order by i.kind desc, i.name`;
