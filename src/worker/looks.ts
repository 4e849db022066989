import type { Clock } from "../core/ports.js";
import type { GroupSlots } from "../postgres/slots.js";

interface LooksOptions {
  readonly read: () => Promise<readonly GroupSlots[]>;
  readonly clock: Clock;
}

const FRESH_MS = 1_000;
const ANSWER_MS_MAX = 1_000;
// Older numbers would say of a database that is gone that all is well.
const STALE_MS = 15_000;
// Nobody looks at the numbers of a worker that was not scraped for so long: it does not ask for them either.
const UNASKED_MS_MAX = 300_000;

/** The slots of limits as the database has them: looked at when somebody asks, and at most once a second. */
export class Looks {
  readonly #o: LooksOptions;
  #slots: readonly GroupSlots[] = [];
  #full: readonly string[] = [];
  #lookedMs = Number.NEGATIVE_INFINITY;
  #seenMs = Number.NEGATIVE_INFINITY;
  #askedMs = Number.NEGATIVE_INFINITY;
  #looking: Promise<void> | null = null;

  constructor(options: LooksOptions) {
    this.#o = options;
  }

  /** Limits that were full, with tasks before them, at most two seconds ago. Looks again if that is a while ago. */
  get full(): readonly string[] {
    const now = this.#o.clock.now();
    // guard: no look without anybody who looks -> test/metrics/looks.test.ts: "who is never scraped never looks at the limits"
    if (now - this.#askedMs > UNASKED_MS_MAX) return [];
    if (now - this.#lookedMs >= FRESH_MS) void this.#look();
    return now - this.#seenMs < 2 * FRESH_MS ? this.#full : [];
  }

  /** What is known a second after it was asked for, at the latest. */
  async slots(): Promise<readonly GroupSlots[]> {
    this.#askedMs = this.#o.clock.now();
    if (this.#looking !== null || this.#o.clock.now() - this.#lookedMs >= FRESH_MS) {
      let timer: NodeJS.Timeout | undefined;
      const late = new Promise<void>((resolve) => (timer = setTimeout(resolve, ANSWER_MS_MAX)));
      await Promise.race([this.#look(), late]);
      clearTimeout(timer);
    }
    return this.#o.clock.now() - this.#seenMs < STALE_MS ? this.#slots : [];
  }

  #look(): Promise<void> {
    this.#looking ??= this.#ask().finally(() => (this.#looking = null));
    return this.#looking;
  }

  async #ask(): Promise<void> {
    this.#lookedMs = this.#o.clock.now();
    try {
      this.#slots = await this.#o.read();
      this.#seenMs = this.#o.clock.now();
      this.#full = this.#slots.filter(({ waiting }) => waiting > 0).map(({ group }) => group);
    } catch {
      // The database cannot be reached, which others tell.
    }
  }
}
