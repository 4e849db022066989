import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { statement } from "../statement.js";
import type { Unplaced } from "./place.js";

const rootsStatement = statement<Unplaced>({
  name: "workflow_roots",
  text: "select run::text as run, node, stream, total, priority, attempts from sluice.workflow_roots($1)",
  params: ["int8"],
  columns: ["run", "node", "stream", "total", "priority", "attempts"],
});

/** The nodes of one run that code must place. They are not locked yet. */
export function unplacedOf(db: Database, run: string, tx?: Queryable): Promise<Unplaced[]> {
  return db.run(rootsStatement, [run], tx);
}

const holdStatement = statement<{ held: boolean }>({
  name: "workflow_lock_unplaced",
  text: "select sluice.workflow_lock_unplaced($1, $2, $3) as held",
  params: ["int8", "int2", "bool"],
  columns: ["held"],
});

/**
 * Locks a node until the transaction ends. False if another transaction has locked or placed it, or it is no longer
 * wanted. ours: the transaction is not a user's, so the server may end it if it is idle.
 */
export async function lockUnplaced(
  db: Database,
  { run, node }: Pick<Unplaced, "run" | "node">,
  ours: boolean,
  tx: Queryable,
): Promise<boolean> {
  return (await db.one(holdStatement, [run, node, ours], tx)).held;
}
