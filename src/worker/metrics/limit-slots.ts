import type { Clock } from "../../core/ports.js";
import type { SlotsReading } from "../../postgres/slots.js";
import { within } from "../../core/within.js";

interface LimitSlotsOptions {
  readonly read: () => Promise<SlotsReading>;
  readonly clock: Clock;
}

const FRESH_MS = 1_000;
const ANSWER_MS_MAX = 1_000;
// Older numbers would hide that the database is gone.
const STALE_MS = 15_000;
const NOTHING: SlotsReading = { slots: [], omitted: 0 };

/** The slots of limits in the database: read on demand, at most once a second. */
export class LimitSlots {
  readonly #o: LimitSlotsOptions;
  #latest: SlotsReading = NOTHING;
  #askedMs = Number.NEGATIVE_INFINITY;
  #latestMs = Number.NEGATIVE_INFINITY;
  #asking: Promise<void> | null = null;

  constructor(options: LimitSlotsOptions) {
    this.#o = options;
  }

  /** Waits at most a second for the database. */
  async read(): Promise<SlotsReading> {
    if (this.#asking !== null || this.#o.clock.now() - this.#askedMs >= FRESH_MS)
      await within(this.#askOnce(), ANSWER_MS_MAX);
    return this.#o.clock.now() - this.#latestMs < STALE_MS ? this.#latest : NOTHING;
  }

  #askOnce(): Promise<void> {
    this.#asking ??= this.#ask().finally(() => (this.#asking = null));
    return this.#asking;
  }

  async #ask(): Promise<void> {
    this.#askedMs = this.#o.clock.now();
    try {
      this.#latest = await this.#o.read();
      this.#latestMs = this.#o.clock.now();
    } catch {
      // The database cannot be reached; the heartbeat and the claimer log that.
    }
  }
}
