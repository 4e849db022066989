import type { Clock } from "../core/ports.js";

// How long what was too much is remembered; then twice as much is tried again.
const REMEMBERED_MS = 30_000;

/**
 * How much one statement may carry. The server stops a statement that takes longer than its statement_timeout allows,
 * and would stop the same one again: half of it may pass.
 */
export class Portion {
  readonly #max: number;
  readonly #clock: Clock;
  #size: number;
  #sinceMs = 0;

  constructor(max: number, clock: Clock) {
    this.#max = this.#size = max;
    this.#clock = clock;
  }

  get size(): number {
    if (this.#size === this.#max) return this.#max;
    const now = this.#clock.now();
    if (now - this.#sinceMs >= REMEMBERED_MS) {
      this.#size = Math.min(this.#max, 2 * this.#size);
      this.#sinceMs = now;
    }
    return this.#size;
  }

  /** A statement with so many was stopped. */
  tooMuch(tried: number): void {
    this.#size = Math.max(1, Math.floor(Math.min(this.#size, tried) / 2));
    this.#sinceMs = this.#clock.now();
  }
}
