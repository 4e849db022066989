import type { Queryable } from "../core/ports.js";
import type { Database } from "./database.js";
import { repeat } from "./repeat.js";
import { statement } from "./statement.js";
import { cancelMaps } from "./workflow/cancel-maps.js";

/**
 * - cancelled: the task will not run.
 * - asked: the task is running; its worker is notified, or sees the request with its next heartbeat.
 * - over: the task had already ended.
 * - unknown: there is no such task.
 * - moving: the task is between two states right now.
 */
export type CancelAnswer = "cancelled" | "asked" | "over" | "unknown" | "moving";

const cancelStatement = statement<{ id: string; answer: CancelAnswer }>({
  name: "cancel",
  text: "select id::text as id, answer from sluice.cancel($1::text::bigint[], $2)",
  params: ["text", "text"],
  columns: ["id", "answer"],
});

const MOVING_TRIES_MAX = 50;

/** Cancels tasks in any state, and their fan-outs. In a transaction of the caller's, a keeper cancels the fan-outs. */
export async function cancel(
  db: Database,
  ids: readonly string[],
  reason: string | null,
  tx?: Queryable,
): Promise<CancelAnswer[]> {
  const answers = new Map<string, CancelAnswer>();
  let left = ids;
  for (let tries = 0; left.length > 0 && tries < MOVING_TRIES_MAX; tries++) {
    for (const row of await db.run(cancelStatement, [`{${left.join(",")}}`, reason], tx))
      answers.set(row.id, row.answer);
    left = left.filter((id) => answers.get(id) === "moving");
  }
  const gone = ids.filter((id) => answers.get(id) === "cancelled");
  // The tasks are cancelled even if this fails: a keeper does the rest.
  if (tx === undefined && gone.length > 0) await cancelMaps(db, null, gone).catch(() => {});
  return ids.map((id) => answers.get(id) ?? "unknown");
}

const retryStatement = statement<{ retried: boolean }>({
  name: "retry",
  text: "select sluice.retry($1, $2) as retried",
  params: ["int8", "int8"],
  columns: ["retried"],
});

/** Runs a failed or cancelled task again. False if it is neither. */
export async function retry(db: Database, id: string): Promise<boolean> {
  const { retried } = await repeat((token) => db.one(retryStatement, [id, token]));
  return retried;
}

const unblockStatement = statement<{ unblocked: boolean }>({
  name: "unblock",
  text: "select sluice.unblock($1) as unblocked",
  params: ["int8"],
  columns: ["unblocked"],
});

/** Unblocks the order key that a failed task blocks, so that the tasks behind it run without it. */
export async function unblock(db: Database, id: string): Promise<boolean> {
  return (await db.one(unblockStatement, [id])).unblocked;
}
