import type { Connection } from "../connection.js";
import { statement } from "../statement.js";

/** Where a walk over rows begins, and the value that marks its end. */
export const FIRST = "0";

/** Result of a keeper's pass over the runs. */
export interface RunsKept {
  readonly moved: number;
  /** Time until the next timer, in ms; null if there is none. */
  readonly nextMs: number | null;
  /** Some node's tasks must be placed by a transaction of its own. */
  readonly unplaced: boolean;
  /** The run after which the next pass over runs with tasks to rerun continues. */
  readonly after: string;
}

interface KeptRow {
  readonly moved: number;
  readonly next_ms: string | null;
  readonly unplaced: boolean;
  readonly after: string;
}

const keepStatement = statement<KeptRow>({
  name: "workflow_keep",
  text: "select moved, next_ms, unplaced, after::text as after from sluice.workflow_keep($1, $2)",
  params: ["int4", "int8"],
  columns: ["moved", "next_ms", "unplaced", "after"],
});

/**
 * Processes notes, expired timers, and tasks to cancel or to rerun, at most max of each. `moved` is at least max while
 * there is more to do at once.
 */
export async function keepRuns(connection: Connection, max: number, after = FIRST): Promise<RunsKept> {
  const [row] = await connection.run(keepStatement, [max, after]);
  return {
    after: row?.after ?? FIRST,
    moved: row?.moved ?? 0,
    nextMs: row?.next_ms == null ? null : Number(row.next_ms),
    unplaced: row?.unplaced ?? false,
  };
}

/** The last fan-out and the last parent that a walk over them has reached. */
export interface OrphansWalk {
  readonly after: string;
  readonly afterParent: string;
}

const orphansStatement = statement<{ cancelled: number; after: string; after_parent: string }>({
  name: "workflow_orphans",
  text: `select cancelled, after::text as after, after_parent::text as after_parent
    from sluice.workflow_orphans($1, $2, $3)`,
  params: ["int4", "int8", "int8"],
  columns: ["cancelled", "after", "after_parent"],
});

/**
 * Cancels one fan-out whose task has ended without success, out of at most max that were noted, and checks the next of
 * those that have not been noted or woken.
 */
export async function cancelOrphans(
  connection: Connection,
  max: number,
  walk: OrphansWalk = { after: FIRST, afterParent: FIRST },
): Promise<OrphansWalk & { readonly cancelled: number }> {
  const [row] = await connection.run(orphansStatement, [max, walk.after, walk.afterParent]);
  return {
    cancelled: row?.cancelled ?? 0,
    after: row?.after ?? FIRST,
    afterParent: row?.after_parent ?? FIRST,
  };
}

const pruneStatement = statement<{ pruned: number; after: string }>({
  name: "workflow_prune",
  text: "select pruned, after::text as after from sluice.workflow_prune($1, $2, $3, $4, $5)",
  params: ["int8", "int8", "int8", "int4", "int8"],
  columns: ["pruned", "after"],
});

/** Result of a pass over old runs. */
interface RunsPruned {
  readonly pruned: number;
  /** The fan-out after which the next pass continues. */
  readonly after: string;
  /** There is more to delete or to check. */
  readonly more: boolean;
}

/** Deletes runs that are past their retention, with their tasks, at most max of both. */
export async function pruneRuns(
  connection: Connection,
  older: { readonly succeededMs: number; readonly failedMs: number; readonly cancelledMs: number },
  max: number,
  after = FIRST,
): Promise<RunsPruned> {
  const values = [older.succeededMs, older.failedMs, older.cancelledMs, max, after];
  const [row] = await connection.run(pruneStatement, values);
  const { pruned, after: next } = row ?? { pruned: 0, after: FIRST };
  return { pruned, after: next, more: pruned >= max || next !== FIRST };
}
