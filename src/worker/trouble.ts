import type { Logger } from "../core/ports.js";
import { isOutage } from "../postgres/errors.js";

const DELAY_MS_MIN = 50;
const DELAY_MS_MAX = 3_000;

/** How long to wait after a database error: doubles each time, with jitter, at most 3 s. */
export class Trouble {
  #failures = 0;

  nextDelayMs(): number {
    const full = Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** Math.min(this.#failures, 10));
    this.#failures++;
    return full * (0.5 + Math.random() / 2);
  }

  over(): void {
    this.#failures = 0;
  }
}

/** Logs once that the database can be reached again, and how long it could not. */
export class Reconnect {
  #sinceMs: number | null = null;

  /** A statement failed. Only an outage counts: after any other error the connection still works. */
  failed(e: unknown, nowMs: number): void {
    if (isOutage(e)) this.#sinceMs ??= nowMs;
  }

  answered(log: Logger, nowMs: number): void {
    if (this.#sinceMs === null) return;
    const seconds = Math.round((nowMs - this.#sinceMs) / 100) / 10;
    this.#sinceMs = null;
    log.info(`connected to the database again after ${seconds} s`);
  }
}
