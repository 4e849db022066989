import type pg from "pg";
import { SluiceError } from "../core/error.js";
import type { Logger, Queryable } from "../core/ports.js";
import type { Database } from "../postgres/database.js";
import { isReadOnly, isReplyLost, toSluiceError } from "../postgres/fault.js";
import { destroy } from "../postgres/part.js";
import { settleInTransaction } from "../postgres/settle.js";
import type { PendingEnqueue } from "./context.js";
import { resultText } from "./result.js";
import type { Run } from "./run.js";

interface TransactionDesk {
  readonly db: Database;
  readonly pool: pg.Pool;
  readonly keep: boolean;
  readonly resultBytesMax: number;
  readonly log: Logger;
  readonly onUnconfirmed?: (() => void) | undefined;
}

/**
 * Runs fn, what was enqueued, and the completion of the task in one transaction. The fence comes
 * last, so the run row is locked for a moment only; if the claim was lost, all of it rolls back.
 */
export function completeInTransaction<R>(
  desk: TransactionDesk,
  run: Run,
  pending: readonly PendingEnqueue[],
  fn: (tx: Queryable) => Promise<R>,
): Promise<R> {
  const work = async (tx: Queryable): Promise<R> => {
    // What fn throws stays what it is: a snooze, a cancel, an error of the user's own.
    const result = await fn(tx);
    for (const enqueue of pending) await enqueue(tx);
    await settleInTransaction(desk.db, tx, {
      worker: run.session.id,
      claim: run.claim,
      result: resultText(run, result, desk),
      keep: desk.keep,
    });
    return result;
  };
  return inTransaction(desk.pool, run, work, desk.onUnconfirmed);
}

/** A transaction of one run: commits what work has done, and ends with its run if that is given up. */
export async function inTransaction<R>(
  pool: pg.Pool,
  run: Run,
  work: (tx: Queryable) => Promise<R>,
  /** The commit got no answer. */
  onUnconfirmed?: () => void,
): Promise<R> {
  const client = await pool.connect();
  // It may have been given up while it waited for its turn.
  if (run.finished) {
    client.release();
    throw new SluiceError("not_claimed", `task ${run.claim.id} is settled: it can do nothing more`);
  }
  let broken: Error | undefined;
  let over = false;
  // After the end the connection is somebody else's: a handler that kept its tx must not write into it.
  const tx: Queryable = {
    query: async (text, params) => {
      if (over) throw new SluiceError("not_claimed", "this transaction has ended");
      return client.query(text, params);
    },
  };
  const giveBack = (e?: Error): void => {
    if (over) return;
    over = true;
    client.release(e);
  };
  // A connection that breaks between two statements tells by an event; unheard, it ends the process.
  const hear = (e: Error): void => void (broken ??= e);
  client.on("error", hear);
  // Told to stop, and still at it: its connection may be dead without knowing it, or fn may never end. Both
  // would keep a place in the pool for ever.
  let cut = false;
  let committing = false;
  const forget = run.whenGivenUp(() => {
    cut = true;
    destroy(client);
    giveBack(run.aborted ?? new Error("given up"));
  });
  try {
    await inOurWords(client.query("begin isolation level read committed"));
    const result = await work(tx);
    committing = true;
    await inOurWords(client.query("commit"));
    return result;
  } catch (e) {
    if (committing && isReplyLost(e)) onUnconfirmed?.();
    await client.query("rollback").catch((e2: unknown) => (broken = e2 as Error));
    if (isReadOnly(e)) broken ??= e as Error;
    throw cut ? (run.aborted ?? e) : e;
  } finally {
    forget();
    giveBack(broken);
    if (!cut) client.off("error", hear);
  }
}

async function inOurWords<T>(query: Promise<T>): Promise<T> {
  try {
    return await query;
  } catch (e) {
    throw toSluiceError(e);
  }
}
