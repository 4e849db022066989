import type {
  BareReason,
  ExecutionExplained,
  Explanation,
  Holder,
  QueueExplanation,
  Reason,
} from "../core/explanation.js";
import type { Database } from "../postgres/database.js";
import {
  readExplanation,
  readQueueExplanation,
  type Sent,
  type SentHolder,
  type SentReason,
} from "../postgres/explain.js";
import { queueReasonText, reasonText, stateText, type About } from "./reason.js";

/** Explains why the task does not run; null if it does not exist or its history is not kept. */
export async function explainTask(db: Database, id: string): Promise<Explanation | null> {
  const sent = await readExplanation(db, id);
  if (sent === null) return null;
  const about = { ...sent, at: new Date(sent.at) };
  const explained = {
    ...about,
    createdAt: new Date(sent.createdAt),
    finishedAt: dateOf(sent.finishedAt),
    reasons: sent.reasons.map((reason) => reasonOf(reason, about)),
    execution: sent.execution === null ? null : executionOf(sent.execution),
  };
  return { ...explained, message: explained.reasons[0]?.message ?? stateText(explained) };
}

/** Explains why the tasks of the queue do not run. */
export async function explainQueue(db: Database, queue: string): Promise<QueueExplanation> {
  const sent = await readQueueExplanation(db, queue);
  const at = new Date(sent.at);
  const reasons = sent.reasons.map((each) => {
    const reason = { ...each, until: dateOf(each.until) };
    return { ...reason, message: queueReasonText(reason, at) };
  });
  return { ...sent, at, reasons };
}

function reasonOf(sent: SentReason, about: About): Reason {
  const reason = bareReasonOf(sent, about);
  return { ...reason, message: reasonText(reason, about) };
}

function bareReasonOf(sent: SentReason, about: About): BareReason {
  switch (sent.kind) {
    case "scheduled":
      return { ...sent, until: new Date(sent.until) };
    case "silent":
      return { ...sent, heardAt: new Date(sent.heardAt) };
    case "order":
      return { ...sent, holder: sent.holder === null ? null : holderOf(sent.holder, about) };
    case "blocked":
      return { ...sent, holder: holderOf(sent.holder, about) };
    case "limit":
    case "window":
      return { ...sent, holders: sent.holders.map((holder) => holderOf(holder, about)) };
    default:
      return sent;
  }
}

function holderOf(sent: SentHolder, about: About): Holder {
  const { reason, type, queue } = sent;
  return {
    ...sent,
    since: dateOf(sent.since),
    reason: reason === null ? null : reasonOf(reason, { ...about, type, queue, attempt: 0, error: null }),
  };
}

function executionOf(sent: Sent<ExecutionExplained>): ExecutionExplained {
  const { since, heardAt, leaseUntil } = sent;
  const dates = {
    since: new Date(since),
    heardAt: dateOf(heardAt),
    leaseUntil: dateOf(leaseUntil),
  };
  return { ...sent, ...dates };
}

function dateOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
