import type { Database } from "./database.js";
import { statement } from "./statement.js";

const pauseStatement = statement<{ pause_queue: string }>({
  name: "pause_queue",
  text: "select sluice.pause_queue($1, $2)",
  params: ["text", "bool"],
  columns: ["pause_queue"],
});

/** Stops or resumes claims from a queue, for every worker, once this returns. */
export async function pauseQueue(db: Database, queue: string, paused: boolean): Promise<void> {
  await db.run(pauseStatement, [queue, paused]);
}
