/** One number of a metric, with its labels. */
export interface Sample {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
  /** Defaults to the metric's own name. Set for parts of a histogram. */
  readonly metricName?: string;
}

/**
 * Stores buckets in an array, so that an observation is a search and three additions. Observed values may be in a finer
 * unit than the bounds: milliseconds, where the bounds are seconds.
 */
export class Histogram {
  readonly #bounds: readonly number[];
  readonly #edges: Float64Array;
  readonly #counts: Float64Array;
  readonly #unit: number;
  #sum = 0;

  constructor(bounds: readonly number[], unit = 1) {
    this.#bounds = bounds;
    this.#unit = unit;
    this.#edges = Float64Array.from(bounds, (bound) => bound * unit);
    this.#counts = new Float64Array(bounds.length + 1);
  }

  observe(value: number): void {
    const edges = this.#edges;
    let i = 0;
    while (i < edges.length && value > edges[i]!) i++;
    this.#counts[i]!++;
    this.#sum += value;
  }

  /** Adds the observations of another histogram with the same bounds. */
  add(other: Histogram): void {
    for (const [i, count] of other.#counts.entries()) this.#counts[i]! += count;
    this.#sum += other.#sum;
  }

  /** Samples in Prometheus form: each bucket also counts the values of all lower ones. */
  samples(name: string, labels: Readonly<Record<string, string>>): Sample[] {
    let count = 0;
    const buckets = Array.from(this.#counts, (n, i): Sample => {
      const le = i < this.#bounds.length ? String(this.#bounds[i]) : "+Inf";
      return { labels: { ...labels, le }, value: (count += n), metricName: `${name}_bucket` };
    });
    return [
      ...buckets,
      { labels, value: this.#sum / this.#unit, metricName: `${name}_sum` },
      { labels, value: count, metricName: `${name}_count` },
    ];
  }
}
