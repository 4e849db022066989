import type {
  BareReason,
  Explanation,
  Holder,
  QueueExplanation,
  RunExplained,
} from "../core/explanation.js";
import type { Database } from "../postgres/database.js";
import { readExplanation, readQueueExplanation, type Sent } from "../postgres/explain.js";
import { queueReasonText, reasonText, stateText } from "./reason.js";

/** Why the task does not run; null if there is none, or its history is not kept. */
export async function explainTask(db: Database, id: string): Promise<Explanation | null> {
  const sent = await readExplanation(db, id);
  if (sent === null) return null;
  const { state } = sent;
  const reasons = sent.reasons.map((each) => {
    const reason = reasonOf(each);
    return { ...reason, message: reasonText(reason, sent) };
  });
  const run = sent.run === null ? null : runOf(sent.run);
  return { ...sent, message: reasons[0]?.message ?? stateText({ state, run }), reasons, run };
}

/** What holds the tasks of the queue. */
export async function explainQueue(db: Database, queue: string): Promise<QueueExplanation> {
  const { reasons, ...rest } = await readQueueExplanation(db, queue);
  return { ...rest, reasons: reasons.map((r) => ({ ...r, message: queueReasonText(r) })) };
}

function reasonOf(sent: Sent<BareReason>): BareReason {
  switch (sent.kind) {
    case "scheduled":
      return { ...sent, until: new Date(sent.until) };
    case "order":
      return { ...sent, holder: sent.holder === null ? null : holderOf(sent.holder) };
    case "limit":
    case "window":
      return { ...sent, holders: sent.holders.map(holderOf) };
    default:
      return sent;
  }
}

function holderOf(sent: Sent<Holder>): Holder {
  return { ...sent, since: dateOf(sent.since) };
}

function runOf(sent: Sent<RunExplained>): RunExplained {
  return { ...sent, since: new Date(sent.since), leaseUntil: dateOf(sent.leaseUntil) };
}

function dateOf(text: string | null): Date | null {
  return text === null ? null : new Date(text);
}
