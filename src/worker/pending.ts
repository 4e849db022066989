import type { ContextEnqueued } from "../core/context.js";
import type { Queryable } from "../core/ports.js";

/** Inserts a checked task in a transaction. */
export type InsertTask = (tx: Queryable) => Promise<{ readonly id: string; readonly existed: boolean }>;

/** An enqueue that waits for the completion it is bound to. It may be inserted in several transactions; one commits. */
export class PendingTask {
  readonly #insert: InsertTask;
  #inserted: { readonly tx: Queryable; readonly over: Promise<void> } | null = null;
  /** What the handler receives: it is filled in when the task is inserted, so also in a result that contains it. */
  readonly enqueued: { -readonly [K in keyof ContextEnqueued]: ContextEnqueued[K] } = { id: null, existed: null };

  constructor(insert: InsertTask) {
    this.#insert = insert;
  }

  /** Inserts the task once per transaction: a later call for the same one gets the outcome of the first. */
  insert(tx: Queryable): Promise<void> {
    if (this.#inserted?.tx !== tx) this.#inserted = { tx, over: this.#insertIn(tx) };
    return this.#inserted.over;
  }

  /** The transaction was rolled back: what it inserted does not exist. */
  forget(tx: Queryable): void {
    if (this.#inserted?.tx !== tx) return;
    this.#inserted = null;
    Object.assign(this.enqueued, { id: null, existed: null });
  }

  async #insertIn(tx: Queryable): Promise<void> {
    const { id, existed } = await this.#insert(tx);
    Object.assign(this.enqueued, { id, existed });
  }
}

/** Inserts tasks in the order in which they were enqueued. */
export async function insertAll(pending: readonly PendingTask[], tx: Queryable): Promise<void> {
  for (const task of pending) await task.insert(tx);
}
