import type { Line } from "../line.js";
import { statement } from "../statement.js";

/** What a look at the runs came to. */
export interface RunsKept {
  readonly moved: number;
  /** Until the next timer, null if there is none. */
  readonly nextMs: number | null;
  /** Tasks of some node are to be placed by a transaction of its own. */
  readonly unplaced: boolean;
}

const keepStatement = statement<{ moved: number; next_ms: string | null; unplaced: boolean }>({
  name: "workflow_keep",
  text: "select moved, next_ms, unplaced from sluice.workflow_keep($1)",
  params: ["int4"],
  columns: ["moved", "next_ms", "unplaced"],
});

/** Notes, timers that are over, and tasks that are to be cancelled, at most max of each. */
export async function keepRuns(line: Line, max: number): Promise<RunsKept> {
  const [row] = await line.run(keepStatement, [max]);
  return {
    moved: row?.moved ?? 0,
    nextMs: row?.next_ms == null ? null : Number(row.next_ms),
    unplaced: row?.unplaced ?? false,
  };
}

const orphansStatement = statement<{ cancelled: number }>({
  name: "workflow_orphans",
  text: "select sluice.workflow_orphans($1) as cancelled",
  params: ["int4"],
  columns: ["cancelled"],
});

/** Cancels what handlers fanned out whose task has ended without success. */
export async function cancelOrphans(line: Line, max: number): Promise<number> {
  const [row] = await line.run(orphansStatement, [max]);
  return row?.cancelled ?? 0;
}

const pruneStatement = statement<{ pruned: number }>({
  name: "workflow_prune",
  text: "select sluice.workflow_prune($1, $2, $3, $4) as pruned",
  params: ["int8", "int8", "int8", "int4"],
  columns: ["pruned"],
});

/** Deletes runs that are older than their time with their tasks, at most max of both. Returns how many. */
export async function pruneRuns(
  line: Line,
  older: { readonly succeededMs: number; readonly failedMs: number; readonly cancelledMs: number },
  max: number,
): Promise<number> {
  const values = [older.succeededMs, older.failedMs, older.cancelledMs, max];
  const [row] = await line.run(pruneStatement, values);
  return row?.pruned ?? 0;
}
