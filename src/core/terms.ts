import type { LimitUse } from "./limit.js";
import type { Placement } from "./place.js";
import type { Backoff } from "./retry.js";
import type { Schema } from "./schema.js";

/**
 * What producers and workers have agreed about a type of task. Input is what enqueue takes, Parsed
 * what the schema makes of it, Output what the task results in.
 *
 * Enqueue stores an input as JSON and checks what was stored, not what it was given: a Date has
 * become text by then. The worker parses what was stored again, so a handler sees coercions and
 * defaults of the schema it was deployed with. Order and limits are decided once, at enqueue, from
 * the parsed input, and stored with the task.
 */
export interface TaskTerms<Input = unknown, Parsed = unknown, Output = unknown> {
  readonly type: string;
  readonly queue: string;
  readonly priority: number;
  readonly attempts: number;
  readonly backoff: Backoff;
  /** null = no timeout. */
  readonly timeoutMs: number | null;
  /** The declared number of a limit named after the type; null if it has none. */
  readonly concurrency: number | null;
  readonly ordered: boolean;
  /** Whether a final failure blocks the tasks behind it in its order key. */
  readonly orderBlocks: boolean;
  readonly orderScope: string | null;
  /** The limits of every task of this type; null if a function decides them. */
  readonly limitList: readonly LimitUse[] | null;
  readonly input: Schema<Input, Parsed>;
  /** For types only: a result is stored as the handler returned it. */
  readonly output: Schema<unknown, Output>;
  /** What the input schema makes of a stored value; throws `input_invalid`. A promise only if the schema is asynchronous. */
  parse(stored: unknown): Parsed | Promise<Parsed>;
  /** The order key and limits of a parsed input. */
  place(input: Parsed): Placement;
}
