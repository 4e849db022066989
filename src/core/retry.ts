import { checkInteger, checkNumber } from "./number.js";
import { checkFunction, checkOptions } from "./option.js";

/** How long to wait, in ms, after the given attempt (1, 2, ...) has failed. */
export type Backoff = (attempt: number) => number;

/** How often and how patiently a task is tried. */
export interface RetryPolicy {
  /** Attempts in all, the first included: 1 to 32,000. */
  readonly attempts: number;
  readonly backoff: Backoff;
}

/** Options of `exponential`. */
export interface ExponentialOptions {
  readonly minMs: number;
  readonly maxMs: number;
  readonly factor?: number;
  /** The share of each delay, 0 to 1, that is taken off at random so that failures do not return together. */
  readonly jitter?: number;
}

/** No delay is longer than 30 days. */
export const DELAY_MS_MAX = 30 * 24 * 3_600_000;

const DELAY_RANGE = { min: 0, max: DELAY_MS_MAX };
const ATTEMPTS_RANGE = { min: 1, max: 32_000 };

/** Delays that grow by a factor from `minMs` up to `maxMs`. */
export function exponential(options: ExponentialOptions): Backoff {
  checkOptions("exponential", options, ["minMs", "maxMs", "factor", "jitter"]);
  const { factor = 2, jitter = 0.1 } = options;
  const minMs = checkInteger("minMs", options.minMs, DELAY_RANGE);
  const maxMs = checkInteger("maxMs", options.maxMs, { min: minMs, max: DELAY_MS_MAX });
  checkNumber("factor", factor, { min: 1, max: 1000 });
  checkNumber("jitter", jitter, { min: 0, max: 1 });
  return (attempt) => {
    // Zero times an infinite power would be NaN.
    const fullMs = minMs === 0 ? 0 : Math.min(maxMs, minMs * factor ** (attempt - 1));
    return fullMs * (1 - jitter * Math.random());
  };
}

/** The same delay every time. */
export function fixed(ms: number): Backoff {
  const delayMs = checkInteger("ms", ms, DELAY_RANGE);
  return () => delayMs;
}

const defaultBackoff = exponential({ minMs: 1_000, maxMs: 60_000 });

/** The delay to use after an attempt: whole ms, 0 to 30 days, whatever a user's function returns or throws. */
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

/** Fills in what a policy leaves open: 5 attempts, exponential from 1 s to 60 s. */
export function resolveRetry(policy: Partial<RetryPolicy> = {}): RetryPolicy {
  checkOptions("retry", policy, ["attempts", "backoff"]);
  const { attempts = 5, backoff = defaultBackoff } = policy;
  return {
    attempts: checkInteger("attempts", attempts, ATTEMPTS_RANGE),
    backoff: checkFunction("backoff", backoff),
  };
}
