import type { Agenda } from "./agenda.js";
import { Spread } from "./spread.js";

/** A value that goes up and down: its mean over time, and its maximum. */
class Level {
  readonly #agenda: Agenda;
  now = 0;
  max = 0;
  #area = 0;
  #sinceMs = 0;
  #lastMs = 0;

  constructor(agenda: Agenda) {
    this.#agenda = agenda;
  }

  add(n: number): void {
    this.#settle();
    this.now += n;
    if (this.now > this.max) this.max = this.now;
  }

  /** Forgets earlier values. */
  restart(): void {
    this.#area = 0;
    this.max = this.now;
    this.#sinceMs = this.#lastMs = this.#agenda.nowMs;
  }

  get mean(): number {
    this.#settle();
    const overMs = this.#lastMs - this.#sinceMs;
    return overMs === 0 ? this.now : this.#area / overMs;
  }

  #settle(): void {
    this.#area += this.now * (this.#agenda.nowMs - this.#lastMs);
    this.#lastMs = this.#agenda.nowMs;
  }
}

/** Records the results of the simulation. */
export class Ledger {
  /** Running handlers. */
  readonly inFlight: Level;
  readonly permitsInUse: Level;
  wait = new Spread();
  /** Tasks claimed and not recorded. */
  held = 0;
  done = 0;

  constructor(agenda: Agenda) {
    this.inFlight = new Level(agenda);
    this.permitsInUse = new Level(agenda);
  }

  permits(n: number): void {
    this.permitsInUse.add(n);
  }

  /** The database has recorded `settled` tasks and handed out `claimed` tasks. */
  exchanged(settled: number, claimed: number): void {
    this.done += settled;
    this.held += claimed - settled;
  }

  began(waitedMs: number): void {
    this.inFlight.add(1);
    this.wait.add(waitedMs);
  }

  ended(): void {
    this.inFlight.add(-1);
  }

  /** The warm-up, which begins with everything empty, is over. */
  restart(): void {
    this.inFlight.restart();
    this.permitsInUse.restart();
    this.wait = new Spread();
  }
}
