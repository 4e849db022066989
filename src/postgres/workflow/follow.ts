import { setTimeout as delay } from "node:timers/promises";
import { SluiceError } from "../../core/error.js";
import type { Database } from "../database.js";
import type { Connection } from "../connection.js";
import { statement } from "../statement.js";

const followStatement = statement<{ moved: number; more: boolean }>({
  name: "workflow_follow",
  text: "select moved, more from sluice.workflow_follow($1, $2)",
  params: ["int8", "int4"],
  columns: ["moved", "more"],
});

const PIECE_MAX = 1_000;
const REST_MS = 100;
const RESTS_MAX = 50;

/** After a pause or a resume: the fan-outs of the run's tasks follow it, and so do their tasks' own fan-outs. */
export async function followRun(db: Database, run: string): Promise<void> {
  for (let rests = 0; rests < RESTS_MAX;) {
    const { moved, more } = await db.one(followStatement, [run, PIECE_MAX]);
    if (!more) return;
    if (moved > 0) continue;
    rests++;
    await delay(REST_MS);
  }
  const message = "another transaction has locked the fan-outs of this run for seconds";
  throw new SluiceError("database_busy", `${message}: they are updated later`);
}

/** Completes a pause or a resume that was begun and not finished. True if there is more. */
export async function followLeft(connection: Connection): Promise<boolean> {
  const [row] = await connection.run(followStatement, [null, PIECE_MAX]);
  return row !== undefined && row.moved > 0 && row.more;
}
