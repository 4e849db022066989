import { SluiceError } from "../core/error.js";
import { checkInteger } from "../core/number.js";
import type { Clock } from "../core/ports.js";

/** The clock of a test. It drives the database and the handlers' timeouts, and stands still until the test moves it. */
export interface TestClock {
  now(): Date;
  /** Moves the clock forward. Whatever becomes due runs at the next drain(). */
  advance(ms: number): Promise<void>;
  /** Moves the clock forward to a date. */
  set(date: Date): Promise<void>;
}

const ADVANCE_RANGE = { min: 0, max: 100 * 365 * 24 * 3_600_000 };

/** Holds the time; `move` passes each change on to the database and the drain's worker. */
export class StandingClock implements TestClock {
  #ms: number;
  readonly #move: (to: Date) => Promise<void>;

  constructor(start: Date, move: (to: Date) => Promise<void>) {
    this.#ms = checkDate("now", start);
    this.#move = move;
  }

  /** The same clock, for the parts of a worker. */
  readonly port: Clock = { now: () => this.#ms };

  now(): Date {
    return new Date(this.#ms);
  }

  async advance(ms: number): Promise<void> {
    await this.#to(this.#ms + checkInteger("advance", ms, ADVANCE_RANGE));
  }

  async set(date: Date): Promise<void> {
    const ms = checkDate("set", date);
    if (ms < this.#ms) {
      throw new SluiceError(
        "invalid_option",
        `time cannot go back: it is already ${this.now().toISOString()}. To start in the past, pass now to testSluice`,
      );
    }
    await this.#to(ms);
  }

  async #to(ms: number): Promise<void> {
    this.#ms = ms;
    await this.#move(new Date(ms));
  }
}

function checkDate(option: string, date: unknown): number {
  const ms = date instanceof Date ? date.getTime() : Number.NaN;
  if (!Number.isNaN(ms)) return ms;
  throw new SluiceError("invalid_option", `${option} must be a Date`, { details: { option } });
}
