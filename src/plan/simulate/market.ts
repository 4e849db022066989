import { Fifo } from "./fifo.js";
import type { Random } from "./random.js";

/** A worker from the database's view. */
export interface Seat {
  /** Notifies the worker that `tasks` tasks were enqueued for it. */
  ring(tasks: number): void;
}

/** The database: the waiting tasks in order of arrival, and which sleeping worker is notified of them. */
export class Market {
  readonly #random: Random;
  /** The arrival time of each waiting task. */
  readonly #arrivals = new Fifo<number>();
  /** An array, so that one can be chosen without a scan. */
  readonly #asleep: Seat[] = [];
  readonly #places = new Map<Seat, number>();
  arrived = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  get waiting(): number {
    return this.#arrivals.size;
  }

  arrive(nowMs: number): void {
    this.arrived++;
    this.#arrivals.push(nowMs);
    this.#ring(1);
  }

  /** Hands out up to `most` waiting tasks. Records whether the worker sleeps, if the claim reports it. */
  claim(seat: Seat, most: number, tells: boolean): number[] {
    const claimed: number[] = [];
    while (claimed.length < most && this.#arrivals.size > 0) claimed.push(this.#arrivals.shift()!);
    if (!tells) return claimed;
    const short = claimed.length < most;
    this.#note(seat, short);
    if (!short) this.#ring(most);
    return claimed;
  }

  #note(seat: Seat, asleep: boolean): void {
    const place = this.#places.get(seat);
    if (asleep === (place !== undefined)) return;
    if (place === undefined) {
      this.#places.set(seat, this.#asleep.push(seat) - 1);
      return;
    }
    // The last entry takes the place of the one that is removed.
    const last = this.#asleep.pop()!;
    this.#places.delete(seat);
    if (last === seat) return;
    this.#asleep[place] = last;
    this.#places.set(last, place);
  }

  #ring(tasks: number): void {
    if (this.#asleep.length === 0) return;
    this.#asleep[Math.floor(this.#random() * this.#asleep.length)]!.ring(tasks);
  }
}
