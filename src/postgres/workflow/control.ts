import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** cancelled: it is over. asked: what runs hears of it. over: it had ended. unknown: there is no such run. */
export type RunCancelAnswer = "cancelled" | "asked" | "over" | "unknown";

const cancelStatement = statement<{ answer: RunCancelAnswer }>({
  name: "workflow_cancel",
  text: "select sluice.workflow_cancel($1, $2) as answer",
  params: ["int8", "text"],
  columns: ["answer"],
});

/** Cancels a whole run. What has not begun never begins, from the moment this returns. */
export async function cancelRun(
  db: Database,
  run: string,
  reason: string | null,
): Promise<RunCancelAnswer> {
  return (await db.one(cancelStatement, [run, reason])).answer;
}

const retryStatement = statement<{ nodes: number }>({
  name: "workflow_retry",
  text: "select sluice.workflow_retry($1) as nodes",
  params: ["int8"],
  columns: ["nodes"],
});

/** Runs again from what failed or was cancelled. Returns how many nodes, 0 if none had. */
export async function retryRun(db: Database, run: string): Promise<number> {
  return (await db.one(retryStatement, [run])).nodes;
}

const pauseStatement = statement<{ done: boolean }>({
  name: "workflow_pause",
  text: "select sluice.workflow_pause($1, $2) as done",
  params: ["int8", "bool"],
  columns: ["done"],
});

/** Pauses or resumes a run. False if there is none, or it is over. */
export async function pauseRun(db: Database, run: string, paused: boolean): Promise<boolean> {
  return (await db.one(pauseStatement, [run, paused])).done;
}

const windowStatement = statement<{ done: boolean }>({
  name: "workflow_window",
  text: "select sluice.workflow_window($1, $2, $3) as done",
  params: ["int8", "text", "int4"],
  columns: ["done"],
});

/** Sets how many items of an each run at once. False if the node has no window, or is over. */
export async function setWindow(
  db: Database,
  run: string,
  node: string,
  window: number,
): Promise<boolean> {
  return (await db.one(windowStatement, [run, node, window])).done;
}

const sendStatement = statement<{ sent: boolean }>({
  name: "workflow_send",
  text: "select sluice.workflow_send($1, $2, $3) as sent",
  params: ["int8", "text", "json"],
  columns: ["sent"],
});

/** Sends an event to a run. payload: JSON text. False if there is no such run, or it is over. */
export async function sendEvent(
  db: Database,
  event: { readonly run: string; readonly name: string; readonly payload: string },
  tx?: Queryable,
): Promise<boolean> {
  return (await db.one(sendStatement, [event.run, event.name, event.payload], tx)).sent;
}
