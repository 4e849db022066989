import { bounded } from "./bounded.js";
import { catalogue } from "./catalogue.js";
import { Groups } from "./groups.js";
import { Histogram, type Sample } from "./histogram.js";

const MS = 1_000;
const ENDINGS = ["succeeded", "retried", "failed", "cancelled", "snoozed", "waiting", "released", "lost"] as const;
const POOLS = ["claim", "handlers", "api"] as const;

type Endings = Record<(typeof ENDINGS)[number], number>;
type Pools = Readonly<Record<(typeof POOLS)[number], Histogram>>;

/** The counts of a task type. */
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

/**
 * Counts a worker's events. The hot path only adds to existing numbers; the Prometheus form is built at scrape time.
 */
export class Tally {
  readonly #streams = new Map<number, TypeTally>();
  readonly #types = new Map<string, TypeTally>();
  readonly #stray = new TypeTally();
  readonly #acquisition = new Histogram(catalogue.task_acquisition_latency_seconds.buckets, MS);
  readonly #processing = new Histogram(catalogue.task_processing_latency_seconds.buckets, MS);
  readonly #queueWait = new Histogram(catalogue.task_queue_wait_seconds.buckets, MS);
  readonly #claimSize = new Histogram(catalogue.worker_claim_size.buckets);
  readonly #waits: Pools = {
    claim: new Histogram(catalogue.db_connections_wait_seconds.buckets, MS),
    handlers: new Histogram(catalogue.db_connections_wait_seconds.buckets, MS),
    api: new Histogram(catalogue.db_connections_wait_seconds.buckets, MS),
  };
  #running = 0;
  #busyMs = 0;
  #busyAtMs = 0;
  /** The limits that the worker's tasks pass. */
  readonly groups: Groups;
  claims = 0;
  acquired = 0;
  completions = 0;
  refusals = 0;
  failures = 0;

  /** `onUnknown`: a limit was met whose name is unknown. */
  constructor(onUnknown: () => void = () => {}) {
    this.groups = new Groups(onUnknown);
  }

  /** Registers a stream: the type of its tasks, and the limits that each of them passes. */
  serve(stream: number, type: string, groups: readonly string[]): void {
    this.#streams.set(
      stream,
      bounded(this.#types, type, () => new TypeTally()),
    );
    this.groups.expect(groups);
  }

  claimed(tasks: number, tookMs: number): void {
    this.claims++;
    this.acquired += tasks;
    this.#claimSize.observe(tasks);
    this.#acquisition.observe(tookMs);
  }

  queued(waitMs: number): void {
    this.#queueWait.observe(waitMs);
  }

  passed(passed: Parameters<Groups["passed"]>[0]): void {
    this.groups.passed(passed);
  }

  stepFailed(): void {
    this.failures++;
  }

  waited(pool: keyof Pools, ms: number): void {
    this.#waits[pool].observe(ms);
  }

  started(nowMs: number): void {
    this.#busyUntil(nowMs);
    this.#running++;
  }

  ended(stream: number, ending: keyof Endings, startedMs: number, nowMs: number): void {
    this.#busyUntil(nowMs);
    this.#running--;
    const type = this.#streams.get(stream) ?? this.#stray;
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

  /** The total time of all tasks in flight so far. */
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
}
