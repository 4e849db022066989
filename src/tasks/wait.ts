import { setTimeout as sleep } from "node:timers/promises";
import { isSluiceError, SluiceError } from "../core/error.js";
import { checkMs } from "../core/number.js";
import { quote } from "../core/quote.js";
import type { Database } from "../postgres/database.js";
import type { Listener } from "../postgres/listen.js";

/** The database to poll, and the source of announcements. */
export interface WaitServices {
  readonly db: Database;
  readonly listener: Listener | null;
}

/** How long a wait may last. */
export interface WaitBounds {
  readonly timeoutMs: number | null;
  /** A common deadline for several waits, by performance.now(); without it each wait counts from its own beginning. */
  readonly untilMs?: number | undefined;
  readonly signal: AbortSignal | null;
}

/** The options of a wait that callers can set. */
export interface WaitOptions {
  readonly timeoutMs?: number;
  readonly signal?: AbortSignal;
}

// A query sent at the last moment gets this long to be answered: otherwise a late poll would look like an unresponsive
// database.
const LAST_MS = 250;
const TIMEOUT_RANGE = { min: 1, max: 2_147_483_647 };
const PAUSE_MS_MIN = 100;
const PAUSE_MS_MAX = 2_000;

/** The timeout counts from now. */
export function waitBoundsOf(options: WaitOptions): WaitBounds {
  const signal = checkSignal(options.signal);
  if (options.timeoutMs === undefined) return { timeoutMs: null, signal };
  const timeoutMs = checkMs("timeoutMs", options.timeoutMs, TIMEOUT_RANGE);
  return { timeoutMs, untilMs: performance.now() + timeoutMs, signal };
}

export function checkSignal(signal: unknown): AbortSignal | null {
  if (signal === undefined) return null;
  if (signal instanceof AbortSignal) return signal;
  throw new SluiceError("invalid_option", `signal must be an AbortSignal, not ${quote(signal)}`, {
    details: { option: "signal" },
  });
}

/**
 * A wait that survives lost connections. It retries its queries with growing pauses until the database replies, the
 * timeout expires, the signal is aborted or the client is closed. A refusal by the server, such as a wrong password,
 * ends it immediately. Only for queries that are safe to repeat.
 */
export class Wait {
  readonly #db: Database;
  readonly #bounds: WaitBounds;
  readonly #untilMs: number;
  readonly #what: string;

  constructor(db: Database, bounds: WaitBounds, what: string) {
    this.#db = db;
    this.#bounds = bounds;
    this.#what = what;
    const { timeoutMs, untilMs } = bounds;
    this.#untilMs = untilMs ?? performance.now() + (timeoutMs ?? Number.POSITIVE_INFINITY);
  }

  get leftMs(): number {
    return this.#untilMs - performance.now();
  }

  async ask<T>(question: () => Promise<T>): Promise<T> {
    const { signal } = this.#bounds;
    for (let pauseMs = PAUSE_MS_MIN; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS_MAX)) {
      signal?.throwIfAborted();
      try {
        return await this.#inTime(question());
      } catch (e) {
        // guard: a wait outlives its connection -> test/tasks/wait.test.ts: "result() continues to wait when its backend is terminated"
        /* guard:outlive */ if (!isSluiceError(e, "database_unavailable") || this.#db.closed)
          /* end */ throw e;
        if (this.leftMs <= 0) throw this.#late(e);
      }
      await this.#pause(pauseMs * (0.5 + Math.random() / 2));
    }
  }

  /** Bounds a query that gets no reply, as on a dead network, by the timeout of the wait. */
  #inTime<T>(answer: Promise<T>): Promise<T> {
    const { timeoutMs, signal } = this.#bounds;
    if (timeoutMs === null && signal === null) return answer;
    return new Promise((resolve, reject) => {
      const abort = (): void => reject(signal!.reason as Error);
      signal?.addEventListener("abort", abort, { once: true });
      const late = (): void => reject(this.#late());
      const timer = timeoutMs === null ? undefined : setTimeout(late, Math.max(this.leftMs, LAST_MS));
      const over = (): void => {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
      };
      answer.finally(over).then(resolve, reject);
    });
  }

  async #pause(ms: number): Promise<void> {
    const { signal } = this.#bounds;
    const pauseMs = Math.min(ms, Math.max(this.leftMs, 0));
    await sleep(pauseMs, undefined, signal === null ? {} : { signal }).catch(() => {});
  }

  #late(cause?: unknown): SluiceError {
    const { timeoutMs } = this.#bounds;
    const message = `no reply from the database within ${timeoutMs} ms: it is unknown whether ${this.#what} has ended`;
    return new SluiceError("wait_timeout", message, cause === undefined ? {} : { cause });
  }
}
