// How much of a new measurement counts: large inputs are noticed after a few claims, and forgotten
// after some dozens.
const SHARE = 0.1;

/**
 * Bounds the memory that payloads take, as far as it can be known before a claim: how large its inputs
 * are shows only when they are here. So it goes by the recent ones; claims begin small, which is when
 * that is learnt. Claims of unexpectedly large inputs that are under way may go above, by their batches.
 */
export class Payloads {
  readonly #max: number;
  /** Of a task's input. */
  #typical = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** How many more tasks fit beside what is here and what was asked for. One always fits into nothing. */
  room(here: number, asked: number): number {
    const left = this.#max - here - asked * this.#typical;
    const least = here === 0 && asked === 0 ? 1 : 0;
    return Math.max(least, Math.floor(left / Math.max(1, this.#typical)));
  }

  /** How large those were that have come. */
  learn(claimed: readonly { readonly inputLength: number }[]): void {
    if (claimed.length === 0) return;
    let total = 0;
    for (const { inputLength } of claimed) total += inputLength;
    const mean = total / claimed.length;
    this.#typical = Math.max(mean, this.#typical + SHARE * (mean - this.#typical));
  }
}
