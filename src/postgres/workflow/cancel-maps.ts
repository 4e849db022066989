import type { Database } from "../database.js";
import { statement } from "../statement.js";

const mapsStatement = statement<{ more: boolean }>({
  name: "workflow_cancel_maps",
  text: "select sluice.workflow_cancel_maps($1, $2::text::bigint[], $3) as more",
  params: ["int8", "text", "int4"],
  columns: ["more"],
});

const PIECE_MAX = 1_000;
// A million items and as many that are over already; what is left after that is a keeper's.
const PIECES_MAX = 2_000;

/**
 * Cancels what tasks have fanned out that were cancelled, or whose run was, each piece in a transaction of its own. What
 * a task has made that still runs goes with its end.
 */
export async function cancelMaps(db: Database, run: string | null, tasks: readonly string[]): Promise<void> {
  const values = [run, `{${tasks.join(",")}}`, PIECE_MAX];
  for (let i = 0; i < PIECES_MAX; i++) if (!(await db.one(mapsStatement, values)).more) return;
}
