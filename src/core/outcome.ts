import { checkInteger } from "./number.js";
import { quote } from "./quote.js";
import { clip } from "./text.js";

const REASON_BYTES_MAX = 1024;
const SNOOZE_MS_MAX = 365 * 24 * 3_600_000;

/** Thrown (or returned) by a handler to end its task as cancelled. Made by `cancel`. */
export class CancelOutcome extends Error {
  override readonly name = "CancelOutcome";
  readonly reason: string | null;

  constructor(reason: string | null) {
    super(reason ?? "cancelled by its handler");
    this.reason = reason;
  }
}

/** Thrown (or returned) by a handler to run again later without using up an attempt. Made by `snooze`. */
export class SnoozeOutcome extends Error {
  override readonly name = "SnoozeOutcome";
  readonly delayMs: number;

  constructor(delayMs: number) {
    super(`snoozed for ${delayMs} ms`);
    this.delayMs = delayMs;
  }
}

/**
 * Thrown by ctx.map into a handler whose items are not over: its run ends here, and it runs again when they
 * are. Whatever the handler makes of it, its run waits.
 */
class WaitOutcome extends Error {
  override readonly name = "WaitOutcome";

  constructor(map: string) {
    super(`the items of map "${map}" are not over: let this pass, the handler runs again when they are`);
  }
}

/** Made without a stack: every run that fans out ends with one. */
export function waits(map: string): WaitOutcome {
  return withoutStack(() => new WaitOutcome(map));
}

/** What a handler meant by throwing. */
type Thrown =
  | { readonly kind: "cancel"; readonly reason: string | null }
  | { readonly kind: "snooze"; readonly delayMs: number }
  | { readonly kind: "fail"; readonly error: unknown };

/** `throw cancel("account closed")` ends the task as cancelled, without a retry. */
export function cancel(reason?: string): CancelOutcome {
  const text = reason === undefined ? null : reasonText(reason);
  return withoutStack(() => new CancelOutcome(text));
}

/** A reason as it can be stored: a reason is never lost, and never a reason to fail. */
export function reasonText(reason: unknown): string {
  return typeof reason === "string" ? clip(reason, REASON_BYTES_MAX) : quote(reason);
}

/** `throw snooze(5_000)` runs the task again in 5 s; it keeps its place and its attempts. */
export function snooze(ms: number): SnoozeOutcome {
  const delayMs = checkInteger("snooze", ms, { min: 0, max: SNOOZE_MS_MAX });
  return withoutStack(() => new SnoozeOutcome(delayMs));
}

/** Tells a deliberate outcome from a failure. */
export function classify(thrown: unknown): Thrown {
  try {
    if (thrown instanceof SnoozeOutcome) return { kind: "snooze", delayMs: thrown.delayMs };
    if (thrown instanceof CancelOutcome) return { kind: "cancel", reason: thrown.reason };
  } catch {
    // A proxy may throw from `instanceof`; then it is a failure like any other.
  }
  return { kind: "fail", error: thrown };
}

/** Whether a handler has returned what it should have thrown: it meant the same. */
export function isOutcome(value: unknown): value is CancelOutcome | SnoozeOutcome {
  if (typeof value !== "object" || value === null) return false;
  try {
    return value instanceof SnoozeOutcome || value instanceof CancelOutcome;
  } catch {
    return false;
  }
}

/** Walking the stack is most of what an Error costs, and nobody reads it here. */
function withoutStack<T>(make: () => T): T {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = 0;
  try {
    return make();
  } finally {
    Error.stackTraceLimit = stackTraceLimit;
  }
}
