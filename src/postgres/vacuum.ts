import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

/** Tables whose dead rows slow claims down (`ready`, `gated`, `waiting`) or pile up with every task (`running`). */
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

/** Of those that are ours to clean, as far as the server's statistics know, which is up to a second ago. */
export function walkedRows(connection: Connection): Promise<Rows[]> {
  return connection.run(rowsStatement, []);
}

// Not truncated: that would lock everybody out for a moment. Whoever is at it already does it for us.
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

/** Cleans away dead rows. Only a table's owner may. */
export async function vacuum(connection: Connection, table: Walked): Promise<void> {
  await connection.run(vacuums[table], []);
}
