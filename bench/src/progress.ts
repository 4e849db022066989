/** How far a run is. */
export class Progress {
  readonly #total: number;
  readonly #beganMs: number;
  readonly #now: () => number;
  #done = 0;

  constructor(total: number, now: () => number = Date.now) {
    this.#total = total;
    this.#now = now;
    this.#beganMs = now();
  }

  tick(): void {
    this.#done++;
  }

  /** "17 of 120, 3:05". */
  text(): string {
    const seconds = Math.floor((this.#now() - this.#beganMs) / 1_000);
    const minutes = Math.floor(seconds / 60);
    const clock = `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
    return `[${this.#done} of ${this.#total}, ${clock}]`;
  }
}
