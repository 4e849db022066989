import { describeError } from "./describe.js";
import { checkMs } from "./number.js";
import { quote } from "./quote.js";
import { clip } from "./text.js";

const REASON_BYTES_MAX = 1024;
const SNOOZE_MS_MAX = 365 * 24 * 3_600_000;

/** Thrown (or returned) by a handler to end its task as cancelled. Created by `cancel`. */
export class CancelOutcome extends Error {
  override readonly name = "CancelOutcome";
  readonly reason: string | null;

  constructor(reason: string | null) {
    super(reason ?? "cancelled by its handler");
    this.reason = reason;
  }
}

/** Thrown (or returned) by a handler to run again later without using up an attempt. Created by `snooze`. */
export class SnoozeOutcome extends Error {
  override readonly name = "SnoozeOutcome";
  readonly delayMs: number;

  constructor(delayMs: number) {
    super(`snoozed for ${delayMs} ms`);
    this.delayMs = delayMs;
  }
}

/**
 * Thrown (or returned) by a handler to fail its task at once, without a retry. Created by `fail`, or extended by your
 * own errors.
 */
export class FatalError extends Error {
  override readonly name: string = "FatalError";
  /** Distinguishes this class from other errors for the compiler. */
  declare protected readonly fatal: true;
}

/** What a handler may throw or return instead of a result. */
export type HandlerOutcome = CancelOutcome | SnoozeOutcome | FatalError;

/**
 * Thrown by ctx.map into a handler whose items have not all ended: the execution ends here, and the handler runs again
 * when they have. The execution waits even if the handler catches this error.
 */
class WaitOutcome extends Error {
  override readonly name = "WaitOutcome";

  constructor(map: string) {
    super(`map "${map}" is still running: let this error propagate; the handler runs again when all items have ended`);
  }
}

/** Creates the outcome without a stack: every execution that fans out ends with one. */
export function waits(map: string): WaitOutcome {
  return withoutStack(() => new WaitOutcome(map));
}

/** The intended outcome behind a thrown value. */
type Thrown =
  | { readonly kind: "cancel"; readonly reason: string | null }
  | { readonly kind: "snooze"; readonly delayMs: number }
  /** final: the handler asked for no retry. */
  | { readonly kind: "fail"; readonly error: unknown; readonly final: boolean };

/** `throw cancel("account closed")` ends the task as cancelled, without a retry. */
export function cancel(reason?: string): CancelOutcome {
  const text = reason === undefined ? null : reasonText(reason);
  return withoutStack(() => new CancelOutcome(text));
}

/**
 * `throw fail("the account does not exist")` fails the task at once, without a retry. The reason is stored as its error;
 * an error given as the reason is its cause.
 */
export function fail(reason: string | Error): FatalError {
  const error = isError(reason)
    ? new FatalError(describeError(reason).message, { cause: reason })
    : new FatalError(reasonText(reason));
  Error.captureStackTrace(error, fail);
  return error;
}

function isError(value: unknown): value is Error {
  try {
    return value instanceof Error;
  } catch {
    // A proxy may throw from `instanceof`.
    return false;
  }
}

/** Returns a reason as storable text: it is never lost and never causes a failure. */
export function reasonText(reason: unknown): string {
  return typeof reason === "string" ? clip(reason, REASON_BYTES_MAX) : quote(reason);
}

/**
 * `throw snooze(5_000)` runs the task again in 5 s; the task keeps its place in line and its attempts. Fractions
 * of a ms are rounded.
 */
export function snooze(ms: number): SnoozeOutcome {
  const delayMs = checkMs("snooze", ms, { min: 0, max: SNOOZE_MS_MAX });
  return withoutStack(() => new SnoozeOutcome(delayMs));
}

/** Distinguishes a deliberate outcome from a failure. */
export function classify(thrown: unknown): Thrown {
  try {
    if (thrown instanceof SnoozeOutcome) return { kind: "snooze", delayMs: thrown.delayMs };
    if (thrown instanceof CancelOutcome) return { kind: "cancel", reason: thrown.reason };
    if (thrown instanceof FatalError) return { kind: "fail", error: thrown, final: true };
  } catch {
    // A proxy may throw from `instanceof`; then it is an ordinary failure.
  }
  return { kind: "fail", error: thrown, final: false };
}

/**
 * Returns whether a thrown value is no failure: what `cancel` and `snooze` create, and what `ctx.map` throws while its
 * items run. For middleware that reports errors.
 */
export function isThrownOutcome(e: unknown): boolean {
  try {
    return isOutcome(e) || e instanceof WaitOutcome;
  } catch {
    return false;
  }
}

/** Returns whether a handler has returned an outcome that it should have thrown: both mean the same. */
export function isOutcome(value: unknown): value is HandlerOutcome {
  if (typeof value !== "object" || value === null) return false;
  try {
    return value instanceof SnoozeOutcome || value instanceof CancelOutcome || value instanceof FatalError;
  } catch {
    return false;
  }
}

/** Capturing the stack is most of the cost of an Error, and this stack is never read. */
function withoutStack<T>(make: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
