import { SluiceError } from "../core/error.js";
import { catalogue, PREFIX, type Definition, type MetricName } from "./catalogue.js";
import type { Sample } from "./histogram.js";
import { textOf, type Family } from "./text.js";

type Reading = number | readonly Sample[];

/** The source of each metric's numbers, read at scrape time. The name includes the prefix. */
export type Readers = {
  readonly [name in MetricName]: (name: string) => Reading | Promise<Reading>;
};

/** The part of a prom-client Registry that is needed here, so that prom-client need not be installed. */
export interface RegistryLike {
  // oxlint-disable-next-line typescript/no-explicit-any -- its own class of metrics, of which it asks the name and get()
  registerMetric(metric: any): void;
  getSingleMetric(name: string): unknown;
  removeSingleMetric(name: string): void;
}

const NAMES = Object.keys(catalogue) as MetricName[];

/** The metrics of one worker, optionally also in the user's registry. */
export class Exposition {
  readonly #metrics: readonly ReturnType<typeof metric>[];
  #theirs: RegistryLike | null = null;
  #reading: Promise<string> | null = null;

  constructor(readers: Readers) {
    this.#metrics = NAMES.map((name) => metric(name, readers[name]));
  }

  /** Adds the metrics to the user's registry as well: all of them, or none if it refuses one. */
  join(theirs: RegistryLike): void {
    if (NAMES.some((name) => theirs.getSingleMetric(PREFIX + name) !== undefined))
      throw new SluiceError(
        "invalid_option",
        "this registry already has the metrics of another worker: use one registry per worker",
        { details: { option: "metrics.registry" } },
      );
    this.#theirs = theirs;
    try {
      for (const m of this.#metrics) theirs.registerMetric(m);
    } catch (e) {
      this.withdraw();
      throw e;
    }
  }

  /** The metrics in Prometheus text format. Concurrent calls share one reading. */
  text(): Promise<string> {
    this.#reading ??= this.#read().finally(() => (this.#reading = null));
    return this.#reading;
  }

  async #read(): Promise<string> {
    return textOf(await Promise.all(this.#metrics.map((m) => m.get())));
  }

  /** Removes the metrics from the user's registry, which is then free for another worker. */
  withdraw(): void {
    for (const name of NAMES) this.#theirs?.removeSingleMetric(PREFIX + name);
    this.#theirs = null;
  }
}

/**
 * A prom-client registry needs only the name and `get` of a metric. prom-client's own classes count under a hash of
 * their labels, which costs more per task than everything counted here; these metrics are read only at scrape time.
 */
function metric(name: MetricName, read: Readers[MetricName]) {
  const { kind, help, labels = [] }: Definition = catalogue[name];
  const full = PREFIX + name;
  const described = { name: full, help, type: kind, aggregator: "sum" };
  return {
    ...described,
    labelNames: labels,
    async get(): Promise<Family> {
      const reading = await read(full);
      const values = typeof reading === "number" ? [{ labels: {}, value: reading }] : reading;
      return { ...described, values };
    },
    /** Does nothing: a worker's counters live as long as the worker. */
    reset() {},
  };
}
