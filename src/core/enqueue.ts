import type { Queryable } from "./ports.js";

/** Options for one enqueued task. */
export interface EnqueueOptions {
  /** The earliest time at which the task may run. */
  readonly runAt?: Date;
  /** The minimum delay before the task runs, in ms from now. */
  readonly delayMs?: number;
  /** Overrides the contract's priority. Higher runs first. */
  readonly priority?: number;
  /** A second enqueue with the same key returns the first task instead of creating another. */
  readonly idempotencyKey?: string;
  /** The name of an additional limit for this task. */
  readonly group?: string;
  /** The total of the group's limit, used only if it has none yet. */
  readonly groupLimit?: number;
  /** The caller's transaction: the task exists if and only if it commits. */
  readonly tx?: Queryable;
}

/**
 * The arguments after the contract. The input can be omitted if its type allows undefined. The input type is inferred
 * from the contract alone, never from the argument.
 */
export type EnqueueArgs<Input, Options = EnqueueOptions> = undefined extends Input
  ? [input?: NoInfer<Input>, options?: Options]
  : [input: NoInfer<Input>, options?: Options];
