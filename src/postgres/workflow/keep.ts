import type { Connection } from "../connection.js";
import { statement } from "../statement.js";

/** Where a walk over rows begins, and where it says that it has come to the end. */
export const FIRST = "0";

/** What a look at the runs came to. */
export interface RunsKept {
  readonly moved: number;
  /** Until the next timer, null if there is none. */
  readonly nextMs: number | null;
  /** Tasks of some node are to be placed by a transaction of its own. */
  readonly unplaced: boolean;
  /** After which run the next look at those of which tasks are to run again goes on. */
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
 * Notes, timers that are over, and tasks that are to be cancelled or to run again, at most max of each. At least max
 * were moved while there is more to do at once.
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

/** Up to which fan-out, and which parent, a walk over them has come. */
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
 * Cancels one of the fan-outs of handlers whose task has ended without success, of no more than max that were noted;
 * and looks at the next of those that nobody has noted, or woken.
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

/** What a look at old runs came to. */
interface RunsPruned {
  readonly pruned: number;
  /** After which fan-out the next look goes on. */
  readonly after: string;
  /** There is more to delete, or to look at. */
  readonly more: boolean;
}

/** Deletes runs that are older than their time with their tasks, at most max of both. */
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
