import type { Clock } from "../core/ports.js";
import { within } from "../core/within.js";
import type { SlotsLook } from "../postgres/slots.js";

interface LooksOptions {
  readonly read: () => Promise<SlotsLook>;
  readonly clock: Clock;
}

const FRESH_MS = 1_000;
const ANSWER_MS_MAX = 1_000;
// Older numbers would say of a database that is gone that all is well.
const STALE_MS = 15_000;
const NOTHING: SlotsLook = { slots: [], omitted: 0 };

/** The slots of limits as the database has them: looked at when somebody asks, and at most once a second. */
export class Looks {
  readonly #o: LooksOptions;
  #seen: SlotsLook = NOTHING;
  #lookedMs = Number.NEGATIVE_INFINITY;
  #seenMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;

  constructor(options: LooksOptions) {
    this.#o = options;
  }

  /** What is known a second after it was asked for, at the latest. */
  async seen(): Promise<SlotsLook> {
    if (this.#looking !== null || this.#o.clock.now() - this.#lookedMs >= FRESH_MS)
      await within(this.#look(), ANSWER_MS_MAX);
    return this.#o.clock.now() - this.#seenMs < STALE_MS ? this.#seen : NOTHING;
  }

  #look(): Promise<void> {
    this.#looking ??= this.#ask().finally(() => (this.#looking = null));
    return this.#looking;
  }

  async #ask(): Promise<void> {
    this.#lookedMs = this.#o.clock.now();
    try {
      this.#seen = await this.#o.read();
      this.#seenMs = this.#o.clock.now();
    } catch {
      // The database cannot be reached, which others tell.
    }
  }
}
