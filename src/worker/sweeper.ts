interface SweeperOptions {
  readonly sweep: () => void;
  /** Whether the worker is idle. */
  readonly idle: () => boolean;
}

const BUSY_MS = 50;
const IDLE_MS = 5_000;

/** Calls `sweep` repeatedly: often while tasks are executing, rarely while the worker is idle. */
export class Sweeper {
  readonly #o: SweeperOptions;
  #timer: NodeJS.Timeout | undefined;
  #slow = false;
  #stopped = false;

  constructor(options: SweeperOptions) {
    this.#o = options;
    this.#later();
  }

  /** A task is claimed, or is about to be. */
  speedUp(): void {
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
