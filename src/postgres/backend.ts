import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

/** A transaction on the server. Behind a pooler in transaction mode the next one of the same pid may be anybody's. */
export interface ServerTransaction {
  readonly pid: number;
  /** When it began, in microseconds. */
  readonly began: string;
}

/** Asked inside a transaction, because a pooler tells a pid of its own at connect. */
export const OWN_TRANSACTION =
  "select pg_backend_pid() as pid, (extract(epoch from now()) * 1000000)::bigint::text as began";

/** What the server says about one of our connections. */
export interface Backend {
  /** It waits for a statement, inside a transaction. */
  readonly idle: boolean;
  /** Since when it has been in its state: the same text as long as nothing happens there. */
  readonly since: string;
}

const backendStatement = statement<{ idle: boolean; since: string }>({
  name: "backend",
  text: `select coalesce(state like 'idle in transaction%', false) as idle, coalesce(state_change::text, '') as since
    from pg_stat_activity where pid = $1`,
  params: ["int4"],
  columns: ["idle", "since"],
});

/** Asks over another connection. Null: the server has no such connection. */
export async function backend(connection: Connection, pid: number): Promise<Backend | null> {
  const [row] = await connection.run(backendStatement, [pid]);
  return row ?? null;
}

// Ends the backend only in the same role and transaction, idle for longer than any reply takes.
const endBackendStatement = statement<{ ended: boolean }>({
  name: "end_backend",
  text: `select pg_terminate_backend(pid) as ended from pg_stat_activity
    where pid = $1 and usename = current_user and state like 'idle in transaction%'
      and (extract(epoch from xact_start) * 1000000)::bigint = $2
      and state_change < clock_timestamp() - interval '500 milliseconds'`,
  params: ["int4", "int8"],
  columns: ["ended"],
});

/** Ends a transaction whose connection we have given up, so that its locks come back. False: it is over. */
export async function endBackend(connection: Connection, { pid, began }: ServerTransaction): Promise<boolean> {
  const [row] = await connection.run(endBackendStatement, [pid, began]);
  return row?.ended === true;
}
