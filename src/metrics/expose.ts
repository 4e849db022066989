import { SluiceError } from "../core/error.js";
import { catalogue, PREFIX, type Definition, type MetricName } from "./catalogue.js";
import type { Sample } from "./histogram.js";
import { textOf, type Family } from "./text.js";

type Reading = number | readonly Sample[];

/** Where each metric's numbers come from, asked when somebody looks. The name comes with its prefix. */
export type Readers = {
  readonly [name in MetricName]: (name: string) => Reading | Promise<Reading>;
};

/** A Registry of prom-client's, by what is needed of it: nobody has to install that. */
export interface RegistryLike {
  // oxlint-disable-next-line typescript/no-explicit-any -- its own class of metrics, of which it asks the name and get()
  registerMetric(metric: any): void;
  getSingleMetric(name: string): unknown;
  removeSingleMetric(name: string): void;
}

const NAMES = Object.keys(catalogue) as MetricName[];

/** The metrics of one worker, and in the registry of the user if he has one. */
export class Exposition {
  readonly #metrics: readonly ReturnType<typeof metric>[];
  #theirs: RegistryLike | null = null;
  #reading: Promise<string> | null = null;

  constructor(readers: Readers) {
    this.#metrics = NAMES.map((name) => metric(name, readers[name]));
  }

  /** Puts the metrics into a registry of the user's as well: all of them, or none if it refuses one. */
  join(theirs: RegistryLike): void {
    if (NAMES.some((name) => theirs.getSingleMetric(PREFIX + name) !== undefined))
      throw new SluiceError(
        "invalid_option",
        "this registry has the metrics of another worker already: give each its own",
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

  /** In Prometheus' text format. Those who ask at the same time get the same answer. */
  text(): Promise<string> {
    this.#reading ??= this.#read().finally(() => (this.#reading = null));
    return this.#reading;
  }

  async #read(): Promise<string> {
    return textOf(await Promise.all(this.#metrics.map((m) => m.get())));
  }

  /** The user's registry is free for another worker. */
  withdraw(): void {
    for (const name of NAMES) this.#theirs?.removeSingleMetric(PREFIX + name);
    this.#theirs = null;
  }
}

/**
 * What a registry of prom-client's asks of a metric is its name and `get`. Its own classes count under a
 * hash of their labels, which costs more per task than all that we count; ours are read when somebody looks.
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
    /** Counters of a worker begin with it and end with it. */
    reset() {},
  };
}
