// How much of a new measurement counts: large inputs are noticed after a few claims, and forgotten
// after some dozens.
const SHARE = 0.1;
// How many are asked for at first, when nothing is known of their size.
const UNKNOWN_FIT = 8;
// Once it is full, so much of the bound has to be free again.
const FREE_SHARE = 0.1;

/**
 * Bounds the memory that payloads take, as far as it can be known before a claim: how large its inputs
 * are shows only when they are here. So it goes by the recent ones; the first claim takes a few, whoever
 * called and for how many. Claims of unexpectedly large inputs that are under way may go above, by their
 * batches.
 */
export class Payloads {
  readonly #max: number;
  /** Of a task's input. Before the first, one is taken for so large that only a few fit. */
  #typical: number;
  #known = false;

  constructor(max: number) {
    this.#max = max;
    this.#typical = max / UNKNOWN_FIT;
  }

  /** How many more tasks fit beside what is here and what was asked for. One always fits into nothing. */
  room(here: number, asked: number): number {
    const left = this.#max - here - asked * this.#typical;
    const least = here === 0 && asked === 0 ? 1 : 0;
    return Math.max(least, Math.floor(left / Math.max(1, this.#typical)));
  }

  /** Whether nothing fits; once it was so, until a good part is free again, or single tasks would start and stop claims. */
  full(was: boolean, here: number, asked: number): boolean {
    if (!this.#known) return false;
    if (this.room(here, asked) === 0) return true;
    const left = this.#max - here - asked * this.#typical;
    return was && here + asked > 0 && left < FREE_SHARE * this.#max;
  }

  /** How large those were that have come. */
  learn(claimed: readonly { readonly inputLength: number }[]): void {
    if (claimed.length === 0) return;
    let total = 0;
    for (const { inputLength } of claimed) total += inputLength;
    const mean = total / claimed.length;
    const eased = this.#known ? this.#typical + SHARE * (mean - this.#typical) : mean;
    this.#typical = Math.max(mean, eased);
    this.#known = true;
  }
}
