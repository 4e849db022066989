const DELAY_MS_MIN = 50;
const DELAY_MS_MAX = 3_000;

/** How long to wait after a database error: doubles each time, with jitter, at most 3 s. */
export class Trouble {
  #failures = 0;

  nextDelayMs(): number {
    const full = Math.min(DELAY_MS_MAX, DELAY_MS_MIN * 2 ** Math.min(this.#failures, 10));
    this.#failures++;
    return full * (0.5 + Math.random() / 2);
  }

  over(): void {
    this.#failures = 0;
  }
}
