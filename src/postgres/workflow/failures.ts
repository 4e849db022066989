import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** A node that failed or was cancelled, and why. */
export interface NodeFailure {
  readonly node: string;
  readonly state: "failed" | "cancelled";
  /** For an each: the first item that did not succeed. */
  readonly item: number | null;
  /** The stored part of the error, or of the cancellation's reason. */
  readonly error: unknown;
  /** A recovering branch has handled it. */
  readonly recovered: boolean;
}

const failuresStatement = statement<NodeFailure>({
  name: "workflow_failures",
  text: "select node, state, item, error, recovered from sluice.workflow_failures($1, $2)",
  params: ["int8", "int4"],
  columns: ["node", "state", "item", "error", "recovered"],
});

/** Why a run did not succeed: its failed nodes, unhandled failures first. */
export function runFailures(db: Database, run: string, max: number): Promise<NodeFailure[]> {
  return db.run(failuresStatement, [run, max]);
}
