import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

/**
 * A transaction on the server. Behind a pooler in transaction mode, the next transaction with the same pid may belong
 * to any client.
 */
export interface ServerTransaction {
  readonly pid: number;
  /** Start time, in microseconds. */
  readonly began: string;
}

/** Must run inside a transaction: a pooler reports a pid of its own at connect. */
export const OWN_TRANSACTION =
  "select pg_backend_pid() as pid, (extract(epoch from now()) * 1000000)::bigint::text as began";

/** State of one of our connections, as the server reports it. */
export interface Backend {
  /** Idle in a transaction: the server waits for the next statement. */
  readonly idle: boolean;
  /** Time of the last state change. The text stays the same as long as nothing happens on the connection. */
  readonly since: string;
}

const backendStatement = statement<{ idle: boolean; since: string }>({
  name: "backend",
  text: `select coalesce(state like 'idle in transaction%', false) as idle, coalesce(state_change::text, '') as since
    from pg_stat_activity where pid = $1`,
  params: ["int4"],
  columns: ["idle", "since"],
});

/** Queries the server over another connection. Null: the server has no such connection. */
export async function backend(connection: Connection, pid: number): Promise<Backend | null> {
  const [row] = await connection.run(backendStatement, [pid]);
  return row ?? null;
}

// Ends the backend only if role and transaction match and it has been idle for longer than any reply takes.
const endBackendStatement = statement<{ ended: boolean }>({
  name: "end_backend",
  text: `select pg_terminate_backend(pid) as ended from pg_stat_activity
    where pid = $1 and usename = current_user and state like 'idle in transaction%'
      and (extract(epoch from xact_start) * 1000000)::bigint = $2
      and state_change < clock_timestamp() - interval '500 milliseconds'`,
  params: ["int4", "int8"],
  columns: ["ended"],
});

/** Ends a transaction whose connection we have given up, to release its locks. False: it has already ended. */
export async function endBackend(connection: Connection, { pid, began }: ServerTransaction): Promise<boolean> {
  const [row] = await connection.run(endBackendStatement, [pid, began]);
  return row?.ended === true;
}
