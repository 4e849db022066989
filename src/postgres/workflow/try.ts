import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { statement } from "../statement.js";
import type { Unplaced } from "./place.js";

const tryStatement = statement<{ id: string }>({
  name: "workflow_try",
  text: "select sluice.workflow_try($1::text::bigint[], $2::text::smallint[], $3)::text as id",
  params: ["text", "text", "int8"],
  columns: ["id"],
});

/**
 * Records that user code is about to run for these nodes, which the caller holds locked in another transaction. A
 * process that dies meanwhile leaves the record, and the next process that locks one of the nodes counts it. worker:
 * the worker of this process.
 */
export async function beginTry(
  db: Database,
  nodes: readonly Pick<Unplaced, "run" | "node">[],
  worker: string | null,
): Promise<string> {
  const runs = `{${nodes.map(({ run }) => run).join(",")}}`;
  const numbers = `{${nodes.map(({ node }) => node).join(",")}}`;
  return (await db.one(tryStatement, [runs, numbers, worker], db.aside)).id;
}

const triedStatement = statement<{ found: boolean }>({
  name: "workflow_tried",
  text: "select sluice.workflow_tried($1) as found",
  params: ["int8"],
  columns: ["found"],
});

/**
 * Removes the record after the code has returned: in the transaction that places the nodes, or in one of its own before
 * that rolls back.
 */
export async function endTry(db: Database, id: string, tx: Queryable = db.aside): Promise<void> {
  await db.one(triedStatement, [id], tx);
}
