import { gunzipSync, gzipSync } from "node:zlib";
import type pg from "pg";

/** Everything that a dump needs to know of a table. */
interface Table {
  readonly name: string;
  readonly columns: readonly string[];
}

/**
 * The schema as SQL. `plan` is what the package's own `sluice migrate --plan` prints for an empty database; the rows
 * follow. The embedded PostgreSQL brings no pg_dump, and one of another version refuses.
 */
export async function dumpSchema(client: pg.ClientBase, plan: string): Promise<Buffer> {
  const { rows: tables } = await client.query<Table>(TABLES);
  const names = tables.map(({ name }) => `sluice."${name}"`);
  const parts = [
    "set check_function_bodies = off;",
    // A transaction is around all of it, and nobody else is there to be kept waiting.
    plan.replaceAll(/\bindex concurrently\b/g, "index"),
    `truncate ${names.join(", ")};`,
  ];
  for (const table of tables) parts.push(...(await insertOf(client, table)));
  const { rows: sequences } = await client.query<{ text: string }>(SEQUENCES);
  parts.push(...sequences.map(({ text }) => text), "reset check_function_bodies;");
  return gzipSync(parts.join("\n"), { level: 9 });
}

/** Makes the schema in an empty database. */
export async function restoreSchema(client: pg.ClientBase, dump: Buffer): Promise<void> {
  await client.query(gunzipSync(dump).toString());
}

async function insertOf(client: pg.ClientBase, { name, columns }: Table): Promise<string[]> {
  const quoted = columns.map((column) => `"${column}"`);
  const values = quoted.map((column) => `quote_nullable(${column}::text)`).join(", ");
  const { rows } = await client.query<{ text: string }>(
    `select '(' || concat_ws(', ', ${values}) || ')' as text from sluice."${name}" order by 1`,
  );
  if (rows.length === 0) return [];
  const into = `insert into sluice."${name}" (${quoted.join(", ")}) overriding system value values`;
  return [`${into}\n${rows.map(({ text }) => text).join(",\n")};`];
}

const TABLES = `
  select c.relname::text as name, array_agg(a.attname::text order by a.attnum) as columns
  from pg_class c join pg_attribute a on a.attrelid = c.oid
  where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'r' and a.attnum > 0 and not a.attisdropped
    and a.attgenerated = ''
  group by c.relname order by c.relname`;

const SEQUENCES = `
  select format('select setval(%L, %s);', format('sluice.%I', sequencename), last_value) as text
  from pg_sequences where schemaname = 'sluice' and last_value is not null order by sequencename`;
