import type { Line } from "./line.js";
import { statement } from "./statement.js";

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
export async function backend(line: Line, pid: number): Promise<Backend | null> {
  const [row] = await line.run(backendStatement, [pid]);
  return row ?? null;
}

// Of the same role, and idle for longer than any reply is on its way: it is not a connection that has just begun.
const endBackendStatement = statement<{ ended: boolean }>({
  name: "end_backend",
  text: `select pg_terminate_backend(pid) as ended from pg_stat_activity
    where pid = $1 and usename = current_user and state like 'idle in transaction%'
      and state_change < clock_timestamp() - interval '500 milliseconds'`,
  params: ["int4"],
  columns: ["ended"],
});

/** Ends the other side of a connection that we have given up, so that the locks of its transaction come back. */
export async function endBackend(line: Line, pid: number): Promise<void> {
  await line.run(endBackendStatement, [pid]);
}
