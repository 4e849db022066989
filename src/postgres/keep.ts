import type { Connection } from "./connection.js";
import { statement } from "./statement.js";

const dueStatement = statement<{ moved: number; next_ms: string | null }>({
  name: "due",
  text: "select moved, next_ms from sluice.due($1)",
  params: ["int4"],
  columns: ["moved", "next_ms"],
});

/** Makes scheduled tasks runnable once they are due. nextMs: time until the next one, null if there is none. */
export async function due(connection: Connection, max: number): Promise<{ moved: number; nextMs: number | null }> {
  const [row] = await connection.run(dueStatement, [max]);
  return { moved: row?.moved ?? 0, nextMs: row?.next_ms == null ? null : Number(row.next_ms) };
}

interface Reaped {
  readonly workers: number;
  readonly tasks: number;
  readonly poisoned: number;
}

const reapStatement = statement<Reaped>({
  name: "reap",
  text: "select workers, tasks, poisoned from sluice.reap()",
  params: [],
  columns: ["workers", "tasks", "poisoned"],
});

/** Reclaims the tasks of dead workers. */
export async function reap(connection: Connection): Promise<Reaped> {
  const [row] = await connection.run(reapStatement, []);
  return row ?? { workers: 0, tasks: 0, poisoned: 0 };
}

const pruneDoneStatement = statement<{ pruned: number; rested: boolean }>({
  name: "prune_done",
  text: "select pruned, rested from sluice.prune_done($1, $2, $3)",
  params: ["int8", "int8", "int8"],
  columns: ["pruned", "rested"],
});

/** Deletes a bounded part of the history that is past its retention. rested: enough for this round. */
export async function pruneDone(
  connection: Connection,
  older: { readonly succeededMs: number; readonly failedMs: number; readonly cancelledMs: number },
): Promise<{ pruned: number; rested: boolean }> {
  const { succeededMs, failedMs, cancelledMs } = older;
  const [row] = await connection.run(pruneDoneStatement, [succeededMs, failedMs, cancelledMs]);
  return row ?? { pruned: 0, rested: true };
}

const pruneExpiredStatement = statement<{ pruned: number }>({
  name: "prune_expired",
  text: "select sluice.prune_expired($1) as pruned",
  params: ["int4"],
  columns: ["pruned"],
});

/** Deletes rows that are no longer needed: idempotency keys (at most max), waits, stops, crashes, attempts, credit. */
export async function pruneExpired(connection: Connection, max: number): Promise<number> {
  const [row] = await connection.run(pruneExpiredStatement, [max]);
  return row?.pruned ?? 0;
}

const keepLanesStatement = statement<{ looked: number }>({
  name: "keep_lanes",
  text: "select sluice.keep_lanes($1) as looked",
  params: ["int4"],
  columns: ["looked"],
});

/** Checks lanes that no claim has checked, and lanes after limits were lowered. */
export async function keepLanes(connection: Connection, max: number): Promise<number> {
  const [row] = await connection.run(keepLanesStatement, [max]);
  return row?.looked ?? 0;
}

const forgetLimitsStatement = statement<{ after: number; forgotten: number }>({
  name: "forget_limits",
  text: "select after, forgotten from sluice.forget_limits($1, $2, $3)",
  params: ["int4", "int4", "int8"],
  columns: ["after", "forgotten"],
});

/**
 * Removes groups that were unused for that long, among the next `max` limits. after: where to continue, 0 at the end.
 */
export async function forgetLimits(
  connection: Connection,
  o: { readonly after: number; readonly max: number; readonly unusedMs: number },
): Promise<{ readonly after: number; readonly forgotten: number }> {
  const [row] = await connection.run(forgetLimitsStatement, [o.after, o.max, o.unusedMs]);
  return row ?? { after: 0, forgotten: 0 };
}
