import type { EnqueueArgs, EnqueueOptions } from "./enqueue.js";
import type { Logger, Queryable } from "./ports.js";
import type { MapFunction } from "./map.js";
import type { TaskTerms } from "./terms.js";

/** A task that a handler has enqueued through its context. */
export interface ContextEnqueued {
  /**
   * The id of the task. Inside `ctx.transaction` the task is inserted at once, so the id is known. Outside, it is null
   * until the execution completes; a result that contains this object is stored with the id.
   */
  readonly id: string | null;
  /** Whether the task was found under its idempotency key instead of created; null as long as the id is. */
  readonly existed: boolean | null;
}

/**
 * The handler's view of its current execution, and operations on it.
 * Its functions can be destructured: `const { enqueue } = ctx`.
 */
export interface TaskContext {
  /**
   * The task's id. Ids are issued again if the database is restored to an earlier state, so do not use it as an
   * external key.
   */
  readonly id: string;
  /**
   * The same in every execution of this task, and never used by another task. Pass it to other systems as an
   * idempotency key.
   */
  readonly idempotencyKey: string;
  readonly type: string;
  readonly queue: string;
  /** The number of this attempt, starting at 1. */
  readonly attempt: number;
  /**
   * Unique to this execution, across all tasks. Use it to distinguish a late write of an earlier execution from one of
   * this execution.
   */
  readonly claim: string;
  /** Aborted on timeout, cancellation, a lost lease, or the end of the grace period at shutdown. */
  readonly signal: AbortSignal;
  readonly log: Logger;
  /** Moves the timeout to `ms` from now. Fractions of a ms are rounded. */
  extend(this: void, ms: number): void;
  /** @deprecated Renamed to `extend`. */
  extendLease(this: void, ms: number): void;
  /**
   * Reports progress: a fraction from 0 to 1, and any JSON data (larger than 16 KiB is stored truncated). `status()` of
   * the task returns the latest report. Stored at most once per second; a report that cannot be stored is only logged.
   */
  progress(this: void, fraction: number, data?: unknown): void;
  /** Runs `fn` in a transaction whose commit also completes the task: its effects happen exactly once. */
  transaction<R>(this: void, fn: (tx: Queryable) => Promise<R>): Promise<R>;
  /**
   * Enqueues a task that exists if and only if this execution completes. The input is checked immediately. Inside
   * `ctx.transaction` the task is inserted in that transaction, and its id is known.
   */
  enqueue<Input>(
    this: void,
    task: TaskTerms<Input>,
    ...args: EnqueueArgs<Input, Omit<EnqueueOptions, "tx">>
  ): Promise<ContextEnqueued>;
  /**
   * Runs a task for every item and returns the results in the order of the items. Durable: the items are tasks of their
   * own, created once per task and map name even after crashes.
   *
   * The handler does not wait in place. Its execution ends at this call, releases its slots and does not use up an
   * attempt. When all items have ended, the handler runs again from its beginning, and the call returns immediately. So
   * the code before the call runs more than once, and must reach the same map under the same name. With `hold: true`
   * the handler waits in place and keeps its slots.
   */
  readonly map: MapFunction;
}
