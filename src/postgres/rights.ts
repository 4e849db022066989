import type pg from "pg";

/** Migrates as the owner of the schema, so that the owner at once owns what a member of that role creates. */
export async function becomeOwner(client: pg.ClientBase, schema: string): Promise<void> {
  const { rows } = await client.query<{ become: string }>(OWNER, [schema]);
  for (const { become } of rows) await client.query(become);
}

/** Revokes new functions from PUBLIC, in a schema that roles.sql has closed to PUBLIC. */
export async function closeNew(client: pg.ClientBase, schema: string, names: readonly string[]): Promise<void> {
  const { rows } = await client.query<{ close: string }>(OPEN, [schema, names]);
  for (const { close } of rows) await client.query(close);
}

// Excludes a schema whose tables belong to others, and a role that we may not set.
const OWNER = `
  select format('set local role %I', pg_get_userbyid(n.nspowner)) as become
  from pg_namespace n
  join pg_class c on c.relnamespace = n.oid and c.relname = 'compatibility' and c.relowner = n.nspowner
  where n.nspname = $1 and pg_get_userbyid(n.nspowner) <> current_user and pg_has_role(n.nspowner,
    case when current_setting('server_version_num')::int >= 160000 then 'set' else 'member' end)`;

// A function without an access list is open to PUBLIC. One that roles.sql has closed has a list without PUBLIC. `step`
// stands for all functions, because someone may have closed a single function by hand.
const OPEN = `
  with ours as (
    select p.oid, p.proname, p.proacl from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where n.nspname = $1
  )
  select format('revoke execute on function %s from public', f.oid::regprocedure) as close from ours f
  where f.proname = any ($2::text[]) and f.proacl is null and exists (
    select from ours o
    where o.proname = 'step' and o.proacl is not null
      and not exists (select from aclexplode(o.proacl) a where a.grantee = 0))`;
