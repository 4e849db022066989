/** The same small input for everyone. */
export interface Input {
  readonly n: number;
  /** Its order key, or the key of its limit. */
  readonly key?: string;
  /** When it was enqueued, by `nowMs()`. */
  readonly atMs?: number;
}

/** What the tasks of a workload ask for. An empty shape: nothing. */
export interface Shape {
  /** Tasks of one key run one at a time, in the order in which they were enqueued. */
  readonly ordered?: boolean;
  /** At most so many run at once, over all processes. */
  readonly limit?: number;
  /** At most so many of each key run at once, over all processes. */
  readonly limitPerKey?: number;
  /** What only Sluice is asked for, measured against itself: a peer never sees one. */
  readonly scene?: Scene;
}

/** Tasks that stand beside those that are counted, or contracts that a shape has no word for. */
export interface Scene {
  readonly name: string;
  /** How many tasks stand beside those that are counted. */
  readonly beside: number;
}

/** Enqueues, in a process of its own or in the one that fills. */
export interface Producer {
  /** With its best call for many tasks; it may split them as its maintainers advise. */
  enqueueMany(inputs: readonly Input[]): Promise<void>;
  enqueueOne(input: Input): Promise<void>;
  /**
   * One insert of the caller's own and one task, committed together. Without it: it cannot, or not on
   * this store.
   */
  enqueueWith?(input: Input): Promise<void>;
  close(): Promise<void>;
}

export interface Consumer {
  /** Begins to take tasks. Everything that can be loaded and connected before has been. */
  start(): Promise<void>;
  /** Lets what runs end, and closes. */
  stop(): Promise<void>;
  /** Statements that asked for tasks so far, if it counts them. */
  claims?(): number;
}

export interface Consumption {
  readonly shape: Shape;
  /** How many tasks this process runs at once; null: as the variant sees fit. */
  readonly permits: number | null;
  /** Whether tasks come one by one and the time until they start is measured. */
  readonly latency: boolean;
  /** The handler: counts, may wait, and returns. Synchronous if it can be, so that no subject pays for a promise. */
  readonly work: (input: Input) => Promise<void> | void;
  /** What the command line sets instead of the numbers of Sluice's worker; peers leave it alone. */
  readonly numbers?: Readonly<Record<string, number>>;
}

/** A library in one configuration, as a process of the bench uses it. */
export interface Adapter {
  /** Makes whatever it keeps tasks in. Called once for each database, or emptied Redis. */
  install(url: string, shape: Shape): Promise<void>;
  produce(url: string, shape: Shape): Promise<Producer>;
  consume(url: string, consumption: Consumption): Promise<Consumer>;
  /** How many tasks are not yet recorded as done. Asked after the last handler has returned. */
  unfinished(url: string, shape: Shape): Promise<number>;
  /** Throws if not exactly so many tasks are recorded as done. */
  verify?(url: string, shape: Shape, total: number): Promise<void>;
}

/** One configuration of a library. */
export interface Variant {
  /** "default", "tuned", ... */
  readonly name: string;
  /** What is set, and why. */
  readonly config: string;
  /** Why it cannot do this, or cannot do it in one go; null: it can. */
  cannot(shape: Shape): string | null;
  readonly adapter: Adapter;
  /** Variants of one word fill a database the same way: one that was filled serves all of them. */
  readonly fills?: string;
}

/** A library that is measured. */
export interface Library {
  readonly name: string;
  readonly version: string;
  readonly store: "postgres" | "redis";
  readonly variants: readonly Variant[];
}
