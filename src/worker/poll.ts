import type { ClaimerOptions } from "./claimer-options.js";

interface PollOptions extends Pick<
  ClaimerOptions,
  "pollIntervalMs" | "permits" | "listening" | "pollMsMax" | "onIdlePoll"
> {
  /** Whether the database has recorded that this worker sleeps, so that an enqueue notifies it. */
  readonly asleep: () => boolean;
  readonly onPoll: () => void;
}

// A sleeping worker finds tasks without a notification within this time.
const IDLE_POLL_MS = 1_000;

/** Polls at the interval. A worker that notifications can wake polls rarely. */
export class Poll {
  readonly #o: PollOptions;
  #timer: NodeJS.Timeout | null = null;
  #slow = false;
  #waitMs = 0;
  #stopped = false;

  constructor(options: PollOptions) {
    this.#o = options;
  }

  start(): void {
    this.#later();
    this.#o.onPoll();
  }

  /** A task was claimed, or notifications stopped or resumed reaching this worker. */
  changed(): void {
    if (this.#timer === null) return;
    if (this.#slow !== this.#maySlowDown() || this.#waitMs > this.#msMax()) this.#later();
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
    this.#slow = this.#maySlowDown();
    const waitMs = this.#slow
      ? Math.max(pollIntervalMs, IDLE_POLL_MS) * (0.95 + Math.random() * 0.1)
      : pollIntervalMs * (0.9 + Math.random() * 0.2);
    // guard: a worker in reserve polls -> test/worker/on-call.test.ts: "a worker in reserve polls every second, whatever its interval"
    this.#waitMs = /* guard:reserve */ Math.min(waitMs, this.#msMax() * (0.75 + Math.random() * 0.25)); /* end */
    this.#timer = setTimeout(() => this.start(), this.#waitMs);
    if (this.#slow) this.#o.onIdlePoll?.();
  }

  #msMax(): number {
    return this.#o.pollMsMax?.() ?? Number.POSITIVE_INFINITY;
  }

  #maySlowDown(): boolean {
    const { asleep, permits, listening } = this.#o;
    // guard: who may miss the bell polls as it was told -> test/worker/idle.test.ts: "a worker that has lost its listening connection polls at its interval"
    return asleep() && permits.inUse === 0 && listening /* guard:told */?.() === true; /* end */
  }
}
