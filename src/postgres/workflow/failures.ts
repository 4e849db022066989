import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** A node that failed or was cancelled, and why. */
export interface NodeFailure {
  readonly node: string;
  readonly state: "failed" | "cancelled";
  /** Of an each: the first item that did not succeed. */
  readonly item: number | null;
  /** What is kept of the error, or of the reason of a cancellation. */
  readonly error: unknown;
  /** A branch that recovers has caught it. */
  readonly recovered: boolean;
}

const failuresStatement = statement<NodeFailure>({
  name: "workflow_failures",
  text: "select node, state, item, error, recovered from sluice.workflow_failures($1, $2)",
  params: ["int8", "int4"],
  columns: ["node", "state", "item", "error", "recovered"],
});

/** Why a run did not succeed: its nodes that failed, those first that nothing has caught. */
export function runFailures(db: Database, run: string, max: number): Promise<NodeFailure[]> {
  return db.run(failuresStatement, [run, max]);
}
