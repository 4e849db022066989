import type { Queryable } from "./ports.js";

/** What may be said about one task when it is enqueued. */
export interface EnqueueOptions {
  /** Not before this time. */
  readonly runAt?: Date;
  /** Not before so many ms from now. */
  readonly delayMs?: number;
  /** Instead of the contract's. Higher runs first. */
  readonly priority?: number;
  /** A second enqueue under the same key finds the first task instead of making another. */
  readonly idempotencyKey?: string;
  /** One more limit for this task, by name. */
  readonly group?: string;
  /** The total of that limit, used only if it has none yet. */
  readonly groupLimit?: number;
  /** The caller's transaction: the task exists if and only if it commits. */
  readonly tx?: Queryable;
}

/**
 * The arguments after the contract: the input may be left out where undefined is one. The type
 * of the input comes from the contract alone, never from what is passed.
 */
export type EnqueueArgs<Input, Options = EnqueueOptions> = undefined extends Input
  ? [input?: NoInfer<Input>, options?: Options]
  : [input: NoInfer<Input>, options?: Options];
