import type { LimitUse } from "./limit.js";
import type { Placement } from "./place.js";
import type { Backoff } from "./retry.js";
import type { Schema } from "./schema.js";

/**
 * The agreement between producers and workers about a task type. Input is the type that enqueue accepts, Parsed the
 * type that the schema returns, Output the type of the task's result.
 *
 * Enqueue stores an input as JSON and validates the stored form, not the given value: a Date is text by then. The
 * worker parses the stored input again, so a handler gets the coercions and defaults of the schema it was deployed
 * with. Order and limits are decided once, at enqueue, from the parsed input, and stored with the task.
 */
export interface TaskTerms<Input = unknown, Parsed = unknown, Output = unknown> {
  readonly type: string;
  readonly queue: string;
  readonly priority: number;
  readonly attempts: number;
  readonly backoff: Backoff;
  /** null: no timeout. */
  readonly timeoutMs: number | null;
  /** The declared number of slots of a limit named after the type; null if there is none. */
  readonly concurrency: number | null;
  readonly ordered: boolean;
  /** Whether a final failure blocks the tasks behind it under the same order key. */
  readonly orderBlocks: boolean;
  readonly orderScope: string | null;
  /** The limits of every task of this type; null if a function decides them. */
  readonly limitList: readonly LimitUse[] | null;
  readonly input: Schema<Input, Parsed>;
  /** For types only: a result is stored as the handler returned it. */
  readonly output: Schema<unknown, Output>;
  /**
   * Returns a stored value as parsed by the input schema; throws `input_invalid`. Returns a promise only if the schema
   * is asynchronous.
   */
  parse(stored: unknown): Parsed | Promise<Parsed>;
  /** Returns the order key and the limits of a parsed input. */
  place(input: Parsed): Placement;
}
