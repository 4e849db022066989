import type { EnqueueArgs, EnqueueOptions } from "./enqueue.js";
import type { Logger, Queryable } from "./ports.js";
import type { MapFunction } from "./map.js";
import type { TaskTerms } from "./terms.js";

/** What a handler knows about its run and can do with it. Its functions may be taken out: `const { enqueue } = ctx`. */
export interface TaskContext {
  /** Of the task. Issued again if the database is restored to an earlier state: not a key for others. */
  readonly id: string;
  /** The same in every execution of the task, and of no other task ever: what to give others as an idempotency key. */
  readonly idempotencyKey: string;
  readonly type: string;
  readonly queue: string;
  /** 1 for the first. */
  readonly attempt: number;
  /** Of this run alone, never the same twice, whatever the task: to tell a late write of an earlier run from this one's. */
  readonly claim: string;
  /** Aborted by the timeout, a cancel, a lost lease or the end of the grace at shutdown. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Moves the timeout to so many ms from now. */
  extendLease(this: void, ms: number): void;
  /** Runs `fn` in a transaction whose commit also completes the task: its effects happen exactly once. */
  transaction<R>(this: void, fn: (tx: Queryable) => Promise<R>): Promise<R>;
  /** Enqueues a task that exists if and only if this run completes. Checked at once. */
  enqueue<Input>(
    this: void,
    task: TaskTerms<Input>,
    ...args: EnqueueArgs<Input, Omit<EnqueueOptions, "tx">>
  ): Promise<void>;
  /**
   * Runs a task for every item and returns what they came to, in the order of the items. Durable: the items
   * are tasks of their own, made once under this task and the name, whatever crashes.
   *
   * The handler does not wait for them in place. Its run ends at this call, without its slots and without
   * using up an attempt, and when the items are over the handler runs again from its beginning; then the call
   * returns at once. So what comes before it runs more than once, and must come to the same map under the
   * same name. With `hold: true` the handler waits in place, and keeps its slots.
   */
  readonly map: MapFunction;
}
