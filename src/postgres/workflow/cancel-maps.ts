import type { Database } from "../database.js";
import { statement } from "../statement.js";

const mapsStatement = statement<{ more: boolean }>({
  name: "workflow_cancel_maps",
  text: "select sluice.workflow_cancel_maps($1, $2::text::bigint[], $3) as more",
  params: ["int8", "text", "int4"],
  columns: ["more"],
});

const PIECE_MAX = 1_000;
// Enough for a million items and as many that are already over; a keeper does the rest.
const PIECES_MAX = 2_000;

/**
 * Cancels the fan-outs of tasks that were cancelled or whose run was, each piece in a transaction of its own. Fan-outs
 * of a task that is still running are cancelled when it ends.
 */
export async function cancelMaps(db: Database, run: string | null, tasks: readonly string[]): Promise<void> {
  const values = [run, `{${tasks.join(",")}}`, PIECE_MAX];
  for (let i = 0; i < PIECES_MAX; i++) if (!(await db.one(mapsStatement, values)).more) return;
}
