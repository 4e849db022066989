import { Fifo } from "./fifo.js";
import type { Random } from "./random.js";

/** A worker as the database knows it. */
export interface Seat {
  /** So many tasks were enqueued for it. */
  ring(tasks: number): void;
}

/** The database: who waits, in order of arrival, and which sleeper is called for them. */
export class Market {
  readonly #random: Random;
  /** When each of those that wait arrived. */
  readonly #arrivals = new Fifo<number>();
  /** By number, so that one can be chosen without looking at all. */
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

  /** Hands out as many as are asked for, as far as there are any; notes who sleeps, if the claim tells it. */
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
    // The last one takes the place of the one that leaves.
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
