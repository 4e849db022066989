import { SluiceError } from "../core/error.js";
import { checkInteger } from "../core/number.js";
import type { Clock } from "../core/ports.js";

/** The time of a test: in the database and in the handlers' timeouts. It stands still until it is moved. */
export interface TestClock {
  now(): Date;
  /** Moves the time on. What is due by then happens with the next drain(). */
  advance(ms: number): Promise<void>;
  /** Moves the time on to a date. */
  set(date: Date): Promise<void>;
}

const ADVANCE_RANGE = { min: 0, max: 100 * 365 * 24 * 3_600_000 };

/** Keeps the time; `move` brings it to everybody else. */
export class StandingClock implements TestClock {
  #ms: number;
  readonly #move: (to: Date) => Promise<void>;

  constructor(start: Date, move: (to: Date) => Promise<void>) {
    this.#ms = checkDate("now", start);
    this.#move = move;
  }

  /** The same time, for the parts of a worker. */
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
        `time only moves on: it is ${this.now().toISOString()} already. To begin in the past, pass now to testSluice`,
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
  throw new SluiceError("invalid_option", `${option} takes a Date`, { details: { option } });
}
