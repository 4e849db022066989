import type { Claim } from "../../core/claim.js";
import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** A fan-out that a handler asks for under its task and a name. */
export interface MapCall {
  readonly worker: string;
  readonly claim: Claim;
  readonly name: string;
  readonly stream: number;
  readonly total: number;
  /** null: all at once. */
  readonly window: number | null;
  readonly onError: "failFast" | "finish" | "collect";
}

const mapStatement = statement<{ run: string; fresh: boolean }>({
  name: "workflow_map",
  text: "select run::text as run, fresh from sluice.workflow_map($1, $2, $3, $4, $5, $6, $7, $8)",
  params: ["int8", "int8", "int8", "text", "int4", "int4", "int4", "text"],
  columns: ["run", "fresh"],
});

/**
 * Finds the fan-out of this name, or makes it. Fresh: the caller places its tasks (`placeTasks` with node 1) and
 * says so (`placed`) in the same transaction. Throws `lease_lost` if the task is not ours.
 */
export async function openMap(
  db: Database,
  call: MapCall,
  tx: Queryable,
): Promise<{ run: string; fresh: boolean }> {
  const { worker, claim, name, stream, total, window, onError } = call;
  const values = [worker, claim.id, claim.token, name, stream, total, window, onError];
  return db.one(mapStatement, values, tx);
}
