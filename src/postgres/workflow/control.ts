import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { repeat } from "../repeat.js";
import { statement } from "../statement.js";
import { cancelMaps } from "./cancel-maps.js";
import { followRun } from "./follow.js";

/**
 * - cancelled: the run is over.
 * - asked: its running tasks are asked to stop.
 * - over: it had already ended.
 * - unknown: there is no such run.
 */
export type RunCancelAnswer = "cancelled" | "asked" | "over" | "unknown";

const cancelStatement = statement<{ answer: RunCancelAnswer }>({
  name: "workflow_cancel",
  text: "select sluice.workflow_cancel($1, $2) as answer",
  params: ["int8", "text"],
  columns: ["answer"],
});

/**
 * Cancels a whole run, and the fan-outs of those of its tasks that are not running. Once this returns, nothing begins
 * that has not begun yet.
 */
export async function cancelRun(db: Database, run: string, reason: string | null): Promise<RunCancelAnswer> {
  const { answer } = await db.one(cancelStatement, [run, reason]);
  const over = answer === "asked" && (await workOff(db, run)) === "over";
  // Also if the run was already over: an earlier cancel may not have got this far.
  await cancelMaps(db, run, []);
  return over ? "cancelled" : answer;
}

type Further = "more" | "waits" | "over";

const furtherStatement = statement<{ further: Further }>({
  name: "workflow_continue",
  text: "select sluice.workflow_continue($1, $2) as further",
  params: ["int8", "int4"],
  columns: ["further"],
});

const PIECE_MAX = 1_000;
// Enough for a million items and as many that are already over; a keeper does the rest.
const PIECES_MAX = 2_000;

/** Continues work in pieces, each piece in a transaction of its own, so that nobody waits long for a lock. */
async function workOff(db: Database, run: string): Promise<Further> {
  let further: Further = "more";
  for (let i = 0; i < PIECES_MAX && further === "more"; i++)
    ({ further } = await db.one(furtherStatement, [run, PIECE_MAX]));
  return further;
}

const retryStatement = statement<{ nodes: number }>({
  name: "workflow_retry",
  text: "select sluice.workflow_retry($1, $2) as nodes",
  params: ["int8", "int8"],
  columns: ["nodes"],
});

/** Reruns from the nodes that failed or were cancelled. Returns the number of those nodes, 0 if there are none. */
export async function retryRun(db: Database, run: string): Promise<number> {
  const { nodes } = await repeat((token) => db.one(retryStatement, [run, token]));
  // The run is retried even if this fails: a keeper does the rest.
  // guard: a retry that is done is not refused -> test/fault/reply.test.ts: "a completed retry of a run succeeds although its follow-up statements fail"
  if (nodes > 0)
    await workOff(db, run) /* guard:done */
      .catch(() => {}); /* end */
  return nodes;
}

const pauseStatement = statement<{ done: boolean }>({
  name: "workflow_pause",
  text: "select sluice.workflow_pause($1, $2) as done",
  params: ["int8", "bool"],
  columns: ["done"],
});

/** Pauses or resumes a run and the fan-outs of its tasks. False if there is no such run, or it is over. */
export async function pauseRun(db: Database, run: string, paused: boolean): Promise<boolean> {
  const { done } = await db.one(pauseStatement, [run, paused]);
  if (done) await followRun(db, run);
  return done;
}

const windowStatement = statement<{ done: boolean }>({
  name: "workflow_window",
  text: "select sluice.workflow_window($1, $2, $3) as done",
  params: ["int8", "text", "int4"],
  columns: ["done"],
});

/** Sets how many items of an each run at once. False if the node has no window, or is over. */
export async function setWindow(db: Database, run: string, node: string, window: number): Promise<boolean> {
  return (await db.one(windowStatement, [run, node, window])).done;
}

const sendStatement = statement<{ sent: boolean }>({
  name: "workflow_send",
  text: "select sluice.workflow_send($1, $2, $3, $4) as sent",
  params: ["int8", "text", "json", "text"],
  columns: ["sent"],
});

/**
 * An event for a run. payload: JSON text. workflow: the workflow that the run must belong to, if the sender names one.
 */
export interface SentEvent {
  readonly run: string;
  readonly name: string;
  readonly payload: string;
  readonly workflow?: string | undefined;
}

/** Sends an event to a run. False if there is no such run, or it is over. */
export async function sendEvent(
  db: Database,
  { run, name, payload, workflow }: SentEvent,
  tx?: Queryable,
): Promise<boolean> {
  return (await db.one(sendStatement, [run, name, payload, workflow ?? null], tx)).sent;
}
