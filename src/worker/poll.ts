import type { ClaimerOptions } from "./claimer-options.js";

interface PollOptions extends Pick<ClaimerOptions, "pollIntervalMs" | "permits" | "listening"> {
  /** Whether the database knows that we sleep, so that an enqueue rings. */
  readonly asleep: () => boolean;
  readonly onPoll: () => void;
}

// Within this time a worker that sleeps finds what nobody rang for.
const DOZE_MS = 1_000;

/** Looks again and again, by the interval; a worker that a bell wakes looks rarely. */
export class Poll {
  readonly #o: PollOptions;
  #timer: NodeJS.Timeout | null = null;
  #dozes = false;
  #stopped = false;

  constructor(options: PollOptions) {
    this.#o = options;
  }

  start(): void {
    this.#later();
    this.#o.onPoll();
  }

  /** Something was claimed, or notifications stopped to arrive, or do again. */
  changed(): void {
    if (this.#timer !== null && this.#dozes !== this.#mayDoze()) this.#later();
  }

  stop(): void {
    this.#stopped = true;
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#timer = null;
  }

  #later(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    if (this.#stopped) return;
    const { pollIntervalMs } = this.#o;
    this.#dozes = this.#mayDoze();
    const waitMs = this.#dozes
      ? Math.max(pollIntervalMs, DOZE_MS) * (0.95 + Math.random() * 0.05)
      : pollIntervalMs * (0.9 + Math.random() * 0.2);
    this.#timer = setTimeout(() => this.start(), waitMs);
  }

  #mayDoze(): boolean {
    const { asleep, permits, listening } = this.#o;
    // guard: who may miss the bell polls as it was told -> test/worker/idle.test.ts: "a worker whose listening connection is lost polls at its interval"
    return asleep() && permits.inUse === 0 && listening?.() === true;
  }
}
