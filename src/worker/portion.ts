import type { Clock } from "../core/ports.js";

// How long a size that was too large is remembered; then twice the current size is tried again.
const REMEMBERED_MS = 30_000;

/**
 * How many items one statement may carry. The server cancels a statement that takes longer than its statement_timeout,
 * and would cancel the same one again; half of it may pass.
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

  /** The server cancelled a statement with this many items. */
  tooMuch(tried: number): void {
    this.#size = Math.max(1, Math.floor(Math.min(this.#size, tried) / 2));
    this.#sinceMs = this.#clock.now();
  }
}
