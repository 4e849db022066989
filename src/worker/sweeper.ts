interface SweeperOptions {
  readonly sweep: () => void;
  /** Whether the worker has nothing in hand. */
  readonly idle: () => boolean;
}

const BUSY_MS = 50;
const IDLE_MS = 5_000;

/** Calls `sweep` again and again: often while tasks are in hand, rarely while the worker is idle. */
export class Sweeper {
  readonly #o: SweeperOptions;
  #timer: NodeJS.Timeout | undefined;
  #slow = false;
  #stopped = false;

  constructor(options: SweeperOptions) {
    this.#o = options;
    this.#later();
  }

  /** Something is in hand, or about to be. */
  quicken(): void {
    if (this.#slow) this.#later();
  }

  stop(): void {
    this.#stopped = true;
    clearTimeout(this.#timer);
  }

  #later(): void {
    clearTimeout(this.#timer);
    if (this.#stopped) return;
    this.#slow = this.#o.idle();
    const sweep = (): void => {
      this.#o.sweep();
      this.#later();
    };
    this.#timer = setTimeout(sweep, this.#slow ? IDLE_MS : BUSY_MS);
  }
}
