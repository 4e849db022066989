import type { BareReason, Explanation, Holder, QueueExplanation, QueueReason } from "../core/explanation.js";
import type { Database } from "./database.js";
import { statement } from "./statement.js";

/** The type after a round trip through JSON: times are text, and nothing is put into words yet. */
export type Sent<T> = T extends Date
  ? string
  : T extends Holder
    ? SentHolder
    : T extends readonly (infer U)[]
      ? readonly Sent<U>[]
      : T extends object
        ? { readonly [K in keyof T]: Sent<T[K]> }
        : T;

export type SentReason = Sent<BareReason>;
export interface SentHolder extends Omit<Holder, "since" | "reason"> {
  readonly since: string | null;
  readonly reason: SentReason | null;
}

type SentExplanation = Sent<Omit<Explanation, "message" | "reasons">> & {
  readonly reasons: readonly SentReason[];
};
type SentQueueExplanation = Omit<QueueExplanation, "at" | "reasons"> & {
  readonly at: string;
  readonly reasons: readonly Sent<Omit<QueueReason, "message">>[];
};

const taskStatement = statement<{ found: SentExplanation | null }>({
  name: "explain",
  text: "select sluice.explain($1) as found",
  params: ["int8"],
  columns: ["found"],
});

const queueStatement = statement<{ found: SentQueueExplanation }>({
  name: "explain_queue",
  text: "select sluice.explain_queue($1) as found",
  params: ["text"],
  columns: ["found"],
});

/** What keeps a task from running; null if there is no such task, or its history is not kept. */
export async function readExplanation(db: Database, id: string): Promise<SentExplanation | null> {
  const [row] = await db.run(taskStatement, [id]);
  return row?.found ?? null;
}

/** What holds back the tasks of the queue; rejects with `unknown_queue` if there is no such queue. */
export async function readQueueExplanation(db: Database, queue: string): Promise<SentQueueExplanation> {
  const [row] = await db.run(queueStatement, [queue]);
  return row!.found;
}
