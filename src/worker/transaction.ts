import { SluiceError } from "../core/error.js";
import type { Logger, Queryable } from "../core/ports.js";
import type { Database } from "../postgres/database.js";
import { fromDriver, isReadOnly, isReplyLost } from "../postgres/errors.js";
import { settleInTransaction } from "../postgres/settle.js";
import { HeldConnection, type Lending } from "./held.js";
import { insertAll, type PendingTask } from "./pending.js";
import { resultText } from "./result.js";
import type { Execution } from "./execution.js";

interface TransactionServices {
  readonly db: Database;
  readonly lending: Lending;
  readonly keepHistory: boolean;
  readonly resultBytesMax: number;
  readonly log: Logger;
  readonly onUnconfirmed?: (() => void) | undefined;
}

/**
 * Runs fn, the enqueues, and the completion of the task in one transaction. The fence comes last, so the task's row in
 * `running` is locked only for a moment. If the claim was lost, everything rolls back.
 */
export function completeInTransaction<R>(
  services: TransactionServices,
  execution: Execution,
  pending: readonly PendingTask[],
  fn: (tx: Queryable) => Promise<R>,
): Promise<R> {
  const work = async ({ tx, own }: HeldConnection): Promise<R> => {
    // An error from fn is passed on unchanged: a snooze, a cancel, or the user's own error.
    const result = await fn(tx);
    // Enqueues have no deadline: an enqueue may wait for another transaction with the same idempotency key.
    await insertAll(pending, tx);
    await settleInTransaction(services.db, own, {
      worker: execution.session.id,
      claim: execution.claim,
      result: resultText(execution, result, services),
      keepHistory: services.keepHistory,
    });
    return result;
  };
  return inTransaction(services.lending, execution, work, services.onUnconfirmed);
}

/** Runs a transaction of one execution: commits what `work` did, and is cut off if the execution is given up. */
export async function inTransaction<R>(
  lending: Lending,
  execution: Execution,
  work: (held: HeldConnection) => Promise<R>,
  /** The commit got no reply. */
  onUnconfirmed?: () => void,
): Promise<R> {
  const held = await HeldConnection.open(execution, lending);
  // The execution may have been given up while it waited for a connection.
  if (execution.finished) {
    held.giveBack();
    throw new SluiceError("not_claimed", `task ${execution.claim.id} is settled: its ctx can no longer be used`);
  }
  // The execution was aborted and still runs: its connection may be dead without an error, or fn may never end. Both
  // would occupy a place in the pool forever.
  let cut = false;
  let committing = false;
  const forget = execution.whenGivenUp(() => {
    cut = true;
    held.cut(execution.aborted ?? new Error("the execution was abandoned"));
    held.giveBack();
  });
  try {
    await inOurWords(held.begin());
    const result = await work(held);
    committing = true;
    await inOurWords(held.own.query("commit"));
    return result;
  } catch (e) {
    if (committing && isReplyLost(e)) onUnconfirmed?.();
    await held.rollback();
    if (isReadOnly(e)) held.breaks(e as Error);
    if (cut) throw execution.aborted ?? e;
    throw held.fromOutage(e) ? execution.excuse(e) : e;
  } finally {
    forget();
    held.giveBack();
  }
}

async function inOurWords<T>(query: Promise<T>): Promise<T> {
  try {
    return await query;
  } catch (e) {
    throw fromDriver(e);
  }
}
