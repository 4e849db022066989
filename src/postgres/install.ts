import type pg from "pg";
import { SluiceError } from "../core/error.js";
import { sqlstate } from "./errors.js";
import { closeNew } from "./rights.js";
import type { Routine } from "./schema-files.js";
import { inSchema } from "./statement.js";

/** Functions and views that are missing or whose text differs from the database's. */
export async function changedRoutines(
  client: pg.ClientBase,
  schema: string,
  routines: readonly Routine[],
): Promise<Routine[]> {
  const { rows } = await client.query<{ name: string; digest: string }>(inSchema(INSTALLED, schema), [schema]);
  const digests = new Map(rows.map(({ name, digest }) => [name, digest]));
  return routines.filter(({ name, digest }) => digests.get(name) !== digest);
}

/** Installs functions and views in the transaction of the migrations. */
export async function installRoutines(
  client: pg.ClientBase,
  schema: string,
  changed: readonly Routine[],
): Promise<void> {
  if (changed.length === 0) return;
  const names = changed.map(({ name }) => name);
  const guarded = await client.query<{ restore: string }>(GUARDED, [schema, names]);
  // A function may call one that is created later.
  await client.query("set local check_function_bodies = off");
  await client.query(inSchema(changed.map(({ sql }) => sql).join("\n"), schema));
  // guard: replaced functions keep the rights of their callers -> test/postgres/migrate.test.ts: "functions that run as the owner still do after they were replaced"
  /* guard:rights */ for (const { restore } of guarded.rows) await client.query(restore); /* end */
  // guard: new functions have no more rights than others -> test/roles/upgrade.test.ts: "a function that a migration installs is not granted to PUBLIC"
  /* guard:close */ await closeNew(client, schema, names); /* end */
  await client.query(inSchema(RECORD, schema), [
    names,
    changed.map(({ kind }) => kind),
    changed.map(({ digest }) => digest),
  ]);
  await refuseOverloads(client, schema, names);
}

/** A changed parameter creates a second function beside the old one, which makes calls ambiguous. */
async function refuseOverloads(client: pg.ClientBase, schema: string, names: readonly string[]) {
  const { rows } = await client.query<{ name: string }>(OVERLOADED, [schema, names]);
  if (rows.length === 0) return;
  const twice = rows.map(({ name }) => name);
  throw new SluiceError(
    "schema_edited",
    `schema ${schema} has two functions with the same name: ${twice.join(", ")}. ` +
      "A function needs a new name when its parameters change",
    { details: { functions: twice } },
  );
}

/** Rejects a schema that is not ours and has functions with our names, which would be replaced. */
export async function refuseForeign(
  client: pg.ClientBase,
  schema: string,
  routines: readonly Routine[],
): Promise<void> {
  const names = routines.map(({ name }) => name);
  const { rows } = await client.query<{ name: string }>(OURS_BY_NAME, [schema, names]);
  if (rows.length === 0) return;
  const found = rows.map(({ name }) => name);
  throw new SluiceError(
    "invalid_option",
    `schema ${schema} already has ${found.length} functions that Sluice would replace, such as ` +
      `${found.slice(0, 3).join(", ")}. Use another schema`,
    { details: { option: "schema", functions: found } },
  );
}

/** A function or view that the library no longer has. isOver: no library that may work on the schema has it. */
export interface Retired {
  readonly name: string;
  readonly kind: string;
  readonly isOver: boolean;
}

/** Retired functions and views that must be dropped, or whose removal is not recorded yet. */
export async function retiredRoutines(
  client: pg.ClientBase,
  schema: string,
  { routines, version }: { readonly routines: readonly Routine[]; readonly version: number },
): Promise<Retired[]> {
  const names = routines.map(({ name }) => name);
  const { rows } = await client.query<Retired>(inSchema(RETIRED, schema), [names, version]);
  return rows;
}

/** Records what this version no longer has, and drops what no library that may work on the schema has. */
export async function retireRoutines(
  client: pg.ClientBase,
  schema: string,
  library: { readonly routines: readonly Routine[]; readonly version: number },
): Promise<void> {
  const names = library.routines.map(({ name }) => name);
  for (const { name, kind, isOver } of await retiredRoutines(client, schema, library)) {
    if (!isOver || !(await dropped(client, `drop ${kind} if exists "${schema}"."${name}"`))) continue;
    await client.query(inSchema("delete from sluice.installed where name = $1", schema), [name]);
  }
  await client.query(inSchema(RETIRE, schema), [names, library.version]);
}

const DEPENDENT_OBJECTS = "2BP01";

/** False: something depends on it, such as a view of the user's. It stays, and the next migration tries again. */
async function dropped(client: pg.ClientBase, text: string): Promise<boolean> {
  await client.query("savepoint retire");
  try {
    await client.query(text);
    return true;
  } catch (e) {
    if (sqlstate(e) !== DEPENDENT_OBJECTS) throw e;
    await client.query("rollback to savepoint retire");
    return false;
  }
}

// Routines that were installed and still exist: someone may have dropped a function, or restored a part of the schema.
const INSTALLED = `
  select i.name, i.digest from sluice.installed i where i.gone_since is null
    and (exists (select from pg_proc p where p.proname = i.name and p.pronamespace = (select oid from pg_namespace where nspname = $1))
      or exists (select from pg_class c where c.relname = i.name and c.relnamespace = (select oid from pg_namespace where nspname = $1)))`;

// roles.sql lets functions run as their owner with a fixed search path. Replacing a function resets both.
const GUARDED = `
  select format('alter function %s security definer%s', p.oid::regprocedure,
    coalesce((select ' set search_path = ' || substr(c, length('search_path=') + 1)
      from unnest(p.proconfig) c where c like 'search_path=%'), '')) as restore
  from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = $1 and p.proname = any ($2::text[]) and p.prosecdef`;

const OURS_BY_NAME = `
  select distinct p.proname::text as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = $1 and p.proname = any ($2::text[]) order by 1`;

const OVERLOADED = `
  select p.proname::text as name from pg_proc p join pg_namespace n on n.oid = p.pronamespace
  where n.nspname = $1 and p.proname = any ($2::text[]) group by p.proname having count(*) > 1 order by 1`;

const RECORD = `
  insert into sluice.installed (name, kind, digest)
  select * from unnest($1::text[], $2::text[], $3::text[])
  on conflict (name) do update set kind = excluded.kind, digest = excluded.digest, gone_since = null`;

// A library older than this version may still call what is gone, as long as compatible_from lets it work.
const RETIRE = `
  update sluice.installed set gone_since = $2::int where gone_since is null and name <> all ($1::text[])`;

const RETIRED = `
  select i.name, i.kind, coalesce(i.gone_since, $2::int) <= c.compatible_from as "isOver"
  from sluice.installed i, sluice.compatibility c
  where i.name <> all ($1::text[]) and (i.gone_since is null or i.gone_since <= c.compatible_from)
  order by i.kind desc, i.name`;
