import { catalogue, LABEL_VALUES_MAX, OTHER } from "./catalogue.js";
import { Histogram, type Sample } from "./histogram.js";

/** A stream as metrics tell it: the type of its tasks, and the limits that each of them passes. */
interface StreamTerms {
  readonly type: string;
  readonly groups: readonly string[];
}

const MS = 1_000;
const ENDINGS = [
  "succeeded",
  "retried",
  "failed",
  "cancelled",
  "snoozed",
  "waiting",
  "released",
  "lost",
] as const;
const POOLS = ["claim", "handlers", "api"] as const;

type Endings = Record<(typeof ENDINGS)[number], number>;
type Pools = Readonly<Record<(typeof POOLS)[number], Histogram>>;

/** What is counted of a type of task. */
class TypeTally {
  readonly endings: Endings = {
    succeeded: 0,
    retried: 0,
    failed: 0,
    cancelled: 0,
    snoozed: 0,
    waiting: 0,
    released: 0,
    lost: 0,
  };
  readonly duration = new Histogram(catalogue.worker_task_duration_seconds.buckets, MS);
}

/** What is counted of a limit. */
class GroupTally {
  rejected = 0;
  started = 0;
  readonly wait = new Histogram(catalogue.concurrency_wait_seconds.buckets, MS);
}

interface StreamTally {
  readonly type: TypeTally;
  readonly groups: readonly GroupTally[];
  started: number;
}

/**
 * Counts what a worker tells. The hot path is additions on numbers that are there: what Prometheus
 * wants to see of them is made when somebody looks.
 */
export class Tally {
  readonly #streams = new Map<number, StreamTally>();
  readonly #types = new Map<string, TypeTally>();
  readonly #groups = new Map<string, GroupTally>();
  readonly #stray: StreamTally = { type: new TypeTally(), groups: [], started: 0 };
  readonly #acquisition = new Histogram(catalogue.task_acquisition_latency_seconds.buckets, MS);
  readonly #processing = new Histogram(catalogue.task_processing_latency_seconds.buckets, MS);
  readonly #queueWait = new Histogram(catalogue.task_queue_wait_seconds.buckets, MS);
  readonly #claimSize = new Histogram(catalogue.worker_claim_size.buckets);
  readonly #waits: Pools = {
    claim: new Histogram(catalogue.db_connections_wait_seconds.buckets, MS),
    handlers: new Histogram(catalogue.db_connections_wait_seconds.buckets, MS),
    api: new Histogram(catalogue.db_connections_wait_seconds.buckets, MS),
  };
  readonly #onShort: () => void;
  #running = 0;
  #busyMs = 0;
  #busyAtMs = 0;
  /** The limits that tasks of this worker pass, as far as their contracts say. */
  groups: ReadonlySet<string> = new Set();
  claims = 0;
  acquired = 0;
  completions = 0;
  refusals = 0;
  failures = 0;

  /** `onShort`: a claim brought less than it asked for. */
  constructor(onShort: () => void = () => {}) {
    this.#onShort = onShort;
  }

  /** Tasks of this stream will come. */
  serve(stream: number, { type, groups }: StreamTerms): void {
    const counted = groups.map((name) => bounded(this.#groups, name, () => new GroupTally()));
    this.#streams.set(stream, {
      type: bounded(this.#types, type, () => new TypeTally()),
      groups: [...new Set(counted)],
      started: 0,
    });
    this.groups = new Set(this.#groups.keys());
  }

  claimed(asked: number, got: number, tookMs: number): void {
    this.claims++;
    this.acquired += got;
    this.#claimSize.observe(got);
    this.#acquisition.observe(tookMs);
    if (got < asked) this.#onShort();
  }

  queued(stream: number, waitMs: number): void {
    this.#queueWait.observe(waitMs);
    for (const group of this.#of(stream).groups) group.wait.observe(waitMs);
  }

  stepFailed(): void {
    this.failures++;
  }

  waited(pool: keyof Pools, ms: number): void {
    this.#waits[pool].observe(ms);
  }

  started(stream: number, nowMs: number): void {
    this.#busyUntil(nowMs);
    this.#running++;
    this.#of(stream).started++;
  }

  ended(stream: number, ending: keyof Endings, startedMs: number, nowMs: number): void {
    this.#busyUntil(nowMs);
    this.#running--;
    const { type } = this.#of(stream);
    type.endings[ending]++;
    type.duration.observe(nowMs - startedMs);
  }

  completed(tasks: number): void {
    this.completions += tasks;
  }

  refused(tasks: number): void {
    this.refusals += tasks;
  }

  answered(items: readonly { readonly startedMs: number }[], nowMs: number): void {
    for (const { startedMs } of items) this.#processing.observe(nowMs - startedMs);
  }

  /** A claim came back short while this limit was full and tasks stood before it. */
  rejected(group: string): void {
    const tally = this.#groups.get(group);
    if (tally !== undefined) tally.rejected++;
  }

  /** The time of all tasks in flight so far, added up. */
  busyMs(nowMs: number): number {
    this.#busyUntil(nowMs);
    return this.#busyMs;
  }

  ends(): Sample[] {
    return [...this.#types].flatMap(([type, { endings }]) =>
      ENDINGS.map((outcome) => ({ labels: { type, outcome }, value: endings[outcome] })),
    );
  }

  durations(name: string): Sample[] {
    return [...this.#types].flatMap(([type, { duration }]) => duration.samples(name, { type }));
  }

  acquisitions(): Sample[] {
    for (const group of this.#groups.values()) group.started = 0;
    for (const { groups, started } of this.#streams.values())
      for (const group of groups) group.started += started;
    return [...this.#groups].flatMap(([group, { started, rejected }]) => [
      { labels: { group, result: "acquired" }, value: started },
      { labels: { group, result: "rejected" }, value: rejected },
    ]);
  }

  groupWaits(name: string): Sample[] {
    return [...this.#groups].flatMap(([group, { wait }]) => wait.samples(name, { group }));
  }

  connectionWaits(name: string): Sample[] {
    return POOLS.flatMap((pool) => this.#waits[pool].samples(name, { pool }));
  }

  claimSizes(name: string): Sample[] {
    return this.#claimSize.samples(name, {});
  }

  acquisitionLatency(name: string): Sample[] {
    return this.#acquisition.samples(name, {});
  }

  processingLatency(name: string): Sample[] {
    return this.#processing.samples(name, {});
  }

  queueWait(name: string): Sample[] {
    return this.#queueWait.samples(name, {});
  }

  #busyUntil(nowMs: number): void {
    if (this.#running > 0) this.#busyMs += this.#running * (nowMs - this.#busyAtMs);
    this.#busyAtMs = nowMs;
  }

  #of(stream: number): StreamTally {
    return this.#streams.get(stream) ?? this.#stray;
  }
}

/** What is known under the name; beyond the maximum all share one. */
function bounded<T>(known: Map<string, T>, name: string, make: () => T): T {
  const key = known.has(name) || known.size < LABEL_VALUES_MAX ? name : OTHER;
  let found = known.get(key);
  if (found === undefined) known.set(key, (found = make()));
  return found;
}
