import type pg from "pg";

/** The schema as the server describes it, one line per object. The order of columns does not count. */
export async function catalogOf(client: pg.ClientBase): Promise<string[]> {
  const { rows } = await client.query<{ line: string }>(`select line from (${PARTS.join(" union all ")}) x order by 1`);
  return rows.map(({ line }) => line);
}

const SCHEMA = "'sluice'::regnamespace";
const RETIRED = "(select name from sluice.installed where gone_since is not null)";

// Only functions and views that the package has: others stay for processes of the previous release.
const PARTS = [
  `select format('%s %s %s %s %s', case relkind when 'r' then 'table' when 'S' then 'sequence' else relkind::text end,
      relname, relpersistence, relreplident, reloptions) as line
    from pg_class where relnamespace = ${SCHEMA} and relkind in ('r', 'S', 'p', 'm')`,
  `select format('column %s.%s %s %s %s %s %s', c.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull,
      a.attidentity, a.attcollation::regcollation, pg_get_expr(d.adbin, d.adrelid))
    from pg_attribute a join pg_class c on c.oid = a.attrelid left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
    where c.relnamespace = ${SCHEMA} and c.relkind in ('r', 'c') and a.attnum > 0 and not a.attisdropped`,
  `select format('sequence %s %s %s %s %s %s', sequencename, data_type, start_value, min_value, max_value, increment_by)
    from pg_sequences where schemaname = 'sluice'`,
  `select format('index %s %s', i.indisvalid, pg_get_indexdef(i.indexrelid))
    from pg_index i join pg_class c on c.oid = i.indexrelid where c.relnamespace = ${SCHEMA}`,
  `select format('constraint %s %s %s', conrelid::regclass, conname, pg_get_constraintdef(oid))
    from pg_constraint where connamespace = ${SCHEMA}`,
  `select format('type %s %s', typname, typtype) from pg_type where typnamespace = ${SCHEMA}`,
  `select format('trigger %s', pg_get_triggerdef(t.oid)) from pg_trigger t join pg_class c on c.oid = t.tgrelid
    where c.relnamespace = ${SCHEMA}`,
  `select format('function %s', pg_get_functiondef(oid)) from pg_proc
    where pronamespace = ${SCHEMA} and prokind = 'f' and proname not in ${RETIRED}`,
  `select format('view %s %s', relname, pg_get_viewdef(oid)) from pg_class
    where relnamespace = ${SCHEMA} and relkind = 'v' and relname not in ${RETIRED}`,
  `select format('right %s %s', relname, relacl) from pg_class where relnamespace = ${SCHEMA} and relacl is not null`,
  `select format('right %s %s', proname, proacl) from pg_proc where pronamespace = ${SCHEMA} and proacl is not null`,
  "select format('migration %s %s %s', number, name, digest) from sluice.migration",
  "select format('installed %s %s %s', name, kind, digest) from sluice.installed where gone_since is null",
];
