import { checkInteger, checkMs, checkNumber } from "./number.js";
import { checkFunction, checkOptions } from "./option.js";

/** Returns the delay in ms after the given attempt (1, 2, ...) has failed. */
export type Backoff = (attempt: number) => number;

/** How many times a task is attempted, and the delays between attempts. */
export interface RetryPolicy {
  /** The total number of attempts, including the first: 1 to 32,000. */
  readonly attempts: number;
  readonly backoff: Backoff;
}

/** Options of `exponential`. */
export interface ExponentialOptions {
  readonly minMs: number;
  readonly maxMs: number;
  readonly factor?: number;
  /**
   * The share of each delay, 0 to 1, that is randomly subtracted so that failed tasks do not retry at the same time.
   */
  readonly jitter?: number;
}

/** The maximum delay: 30 days. */
export const DELAY_MS_MAX = 30 * 24 * 3_600_000;

const DELAY_RANGE = { min: 0, max: DELAY_MS_MAX };
const ATTEMPTS_RANGE = { min: 1, max: 32_000 };

/** Returns delays that grow by a factor from `minMs` up to `maxMs`. */
export function exponential(options: ExponentialOptions): Backoff {
  checkOptions("exponential", options, ["minMs", "maxMs", "factor", "jitter"]);
  const { factor = 2, jitter = 0.1 } = options;
  const minMs = checkMs("minMs", options.minMs, DELAY_RANGE);
  const maxMs = checkMs("maxMs", options.maxMs, { min: minMs, max: DELAY_MS_MAX });
  checkNumber("factor", factor, { min: 1, max: 1000 });
  checkNumber("jitter", jitter, { min: 0, max: 1 });
  return (attempt) => {
    // Zero times an infinite power is NaN.
    const fullMs = minMs === 0 ? 0 : Math.min(maxMs, minMs * factor ** (attempt - 1));
    return fullMs * (1 - jitter * Math.random());
  };
}

/** Returns the same delay after every attempt. */
export function fixed(ms: number): Backoff {
  const delayMs = checkMs("ms", ms, DELAY_RANGE);
  return () => delayMs;
}

const defaultBackoff = exponential({ minMs: 1_000, maxMs: 60_000 });

/**
 * Returns the delay to use after an attempt: whole ms, 0 to 30 days, regardless of what a user's function returns or
 * throws.
 */
export function delayFor(backoff: Backoff, attempt: number): number {
  const delayMs = answerOf(backoff, attempt) ?? defaultBackoff(attempt);
  return Math.round(Math.min(DELAY_MS_MAX, Math.max(0, delayMs)));
}

function answerOf(backoff: Backoff, attempt: number): number | null {
  try {
    const answer: unknown = backoff(attempt);
    return typeof answer === "number" && !Number.isNaN(answer) ? answer : null;
  } catch {
    return null;
  }
}

/** Fills in the defaults of a policy: 5 attempts, exponential backoff from 1 s to 60 s. */
export function resolveRetry(policy: Partial<RetryPolicy> = {}): RetryPolicy {
  checkOptions("retry", policy, ["attempts", "backoff"]);
  const { attempts = 5, backoff = defaultBackoff } = policy;
  return {
    attempts: checkInteger("attempts", attempts, ATTEMPTS_RANGE),
    backoff: checkFunction("backoff", backoff),
  };
}
