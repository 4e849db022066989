import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

/** Tables whose dead rows slow claims down (`ready`, `gated`, `waiting`) or accumulate with every task (`running`). */
export type Walked = "ready" | "gated" | "waiting" | "running";

interface Rows {
  readonly name: Walked;
  readonly live: number;
  readonly dead: number;
}

const rowsStatement = statement<Rows>({
  name: "walked_rows",
  text: `select c.relname::text as name, pg_stat_get_live_tuples(c.oid)::float8 as live,
      pg_stat_get_dead_tuples(c.oid)::float8 as dead
    from pg_class c
    where c.oid = any (array['sluice.ready'::regclass, 'sluice.gated'::regclass, 'sluice.waiting'::regclass,
        'sluice.running'::regclass]::oid[])
      and pg_has_role(c.relowner, 'usage')`,
  params: [],
  columns: ["name", "live", "dead"],
});

/** Row counts of the tables that we may vacuum, from the server's statistics, which lag by up to a second. */
export function walkedRows(connection: Connection): Promise<Rows[]> {
  return connection.run(rowsStatement, []);
}

// Without truncation, which would lock out everyone for a moment. Skips a locked table: its holder already vacuums it.
const vacuums = {
  ready: vacuumStatement("ready"),
  gated: vacuumStatement("gated"),
  waiting: vacuumStatement("waiting"),
  running: vacuumStatement("running"),
} satisfies Record<Walked, unknown>;

function vacuumStatement(table: Walked) {
  const text = `vacuum (truncate false, index_cleanup on, skip_locked) sluice.${table}`;
  return statement<object>({
    name: `vacuum_${table}`,
    text,
    params: [],
    columns: [],
  });
}

/** Vacuums a table. Only its owner may. */
export async function vacuum(connection: Connection, table: Walked): Promise<void> {
  await connection.run(vacuums[table], []);
}
