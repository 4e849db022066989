// The weight of a new measurement: large inputs are noticed after a few claims, and forgotten after some dozens.
const SHARE = 0.1;
// How many tasks are claimed at first, when their size is unknown.
const UNKNOWN_FIT = 8;
// Once full, this share of the bound must be free again.
const FREE_SHARE = 0.1;

/**
 * Bounds the memory of payloads, as far as possible before a claim: input sizes are known only once the inputs arrive.
 * So it estimates from recent inputs. The first claim takes a few tasks, whatever triggered it and however many were
 * announced. Claims in flight with unexpectedly large inputs may exceed the bound by their batches.
 */
export class Payloads {
  readonly #max: number;
  /** Estimated input size. Until the first claim, assume an eighth of the bound. */
  #typical: number;
  #known = false;

  constructor(max: number) {
    this.#max = max;
    this.#typical = max / UNKNOWN_FIT;
  }

  /**
   * How many more tasks fit beside the payloads held and the tasks requested. One task always fits if both are zero.
   */
  room(here: number, asked: number): number {
    const left = this.#max - here - asked * this.#typical;
    const least = here === 0 && asked === 0 ? 1 : 0;
    return Math.max(least, Math.floor(left / Math.max(1, this.#typical)));
  }

  /**
   * Whether no task fits. Once full, stays full until a good part is free again; otherwise single tasks would start and
   * stop claims.
   */
  full(was: boolean, here: number, asked: number): boolean {
    if (!this.#known) return false;
    if (this.room(here, asked) === 0) return true;
    const left = this.#max - here - asked * this.#typical;
    return was && here + asked > 0 && left < FREE_SHARE * this.#max;
  }

  /** Learns from the sizes of claimed inputs. */
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
