// Each bucket is 1 % wider than the one before, which is the error of a quantile.
const GROWTH = Math.log(1.01);
const SMALLEST = 0.001;
const BUCKETS = 2600;

/** The distribution of durations: any number of them in bounded memory, with quantiles within 1 %. */
export class Spread {
  readonly #counts = new Uint32Array(BUCKETS);
  #count = 0;
  #sum = 0;
  #max = 0;

  add(ms: number): void {
    const at = ms < SMALLEST ? 0 : 1 + Math.floor(Math.log(ms / SMALLEST) / GROWTH);
    this.#counts[Math.min(at, BUCKETS - 1)]!++;
    this.#count++;
    this.#sum += ms;
    this.#max = Math.max(this.#max, ms);
  }

  get mean(): number {
    return this.#count === 0 ? 0 : this.#sum / this.#count;
  }

  /** The value below which this share of durations lies; 0 if there are none. */
  quantile(share: number): number {
    let left = Math.ceil(share * this.#count);
    for (let at = 0; at < BUCKETS && this.#count > 0; at++) {
      left -= this.#counts[at]!;
      if (left <= 0) return at === 0 ? 0 : Math.min(this.#max, SMALLEST * Math.exp(at * GROWTH));
    }
    return this.#max;
  }
}
