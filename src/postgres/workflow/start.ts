import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** Runs of one graph to start together. */
export interface RunStarts {
  readonly graph: number;
  /** JSON texts. */
  readonly inputs: readonly string[];
  /** Per run, its idempotency key or ''; null if none has one. */
  readonly idempotency: readonly string[] | null;
  readonly idempotencyMs: number;
  /** The largest input, in bytes, that may be rendered for a task. */
  readonly inputBytesMax: number;
}

/** Ids in the order of the inputs. existed: the run was found by its idempotency key, not started. */
export interface RunsStarted {
  readonly ids: readonly string[];
  readonly existed: readonly boolean[] | null;
}

const startStatement = statement<{ ids: string; existed: string | null }>({
  name: "workflow_start",
  text: "select s.ids::text as ids, s.existed::text as existed from sluice.workflow_start($1, $2, $3, $4, $5) s",
  params: ["int4", "text", "text", "int8", "int4"],
  columns: ["ids", "existed"],
});

const RECORD = "\u001e";

/** Starts runs: in the caller's transaction, or in its own. Only inserts. */
export async function startRuns(db: Database, starts: RunStarts, tx?: Queryable): Promise<RunsStarted> {
  const values = [
    starts.graph,
    starts.inputs.join(RECORD),
    starts.idempotency?.join(RECORD) ?? null,
    starts.idempotencyMs,
    starts.inputBytesMax,
  ];
  const row = await db.one(startStatement, values, tx);
  const list = (text: string): string[] => text.slice(1, -1).split(",");
  return {
    ids: list(row.ids),
    existed: row.existed === null ? null : list(row.existed).map((x) => x === "t"),
  };
}
