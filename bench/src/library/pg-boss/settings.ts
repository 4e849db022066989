import type { ConstructorOptions, Queue, WorkOptions } from "pg-boss";
import type { Consumption, Shape } from "../../adapter.js";

/** What differs between the variants. */
export interface Settings {
  readonly worker: ConstructorOptions;
  readonly queue: Omit<Queue, "name">;
  /** Whether ids are ours, each greater than the one before, or pg-boss's own, which are random. */
  readonly ownIds: boolean;
  /** Jobs of one insert(). */
  readonly bulkSize: number;
  readonly crew: (consumption: Consumption) => Crew;
}

/** The workers of one process: each fetches a batch, runs it at once and completes it. */
export interface Crew {
  readonly workers: number;
  readonly options: WorkOptions;
  /** Whether a worker that had something to do looks again at once, whatever its polling interval. */
  readonly eager: boolean;
}

const AT_ONCE = 2_000;
const AT_ONCE_ORDERED = 1_000;
const WORKERS_MAX = 4;
// A notification wakes every worker, and all but one of them find nothing.
const WORKERS_MAX_WOKEN = 2;
const BATCH_MIN = 250;

export const asIs: Settings = {
  worker: {},
  queue: {},
  ownIds: false,
  bulkSize: 1_000,
  crew: ({ permits }) => ({
    workers: 1,
    options: { localConcurrency: permits ?? 1 },
    eager: false,
  }),
};

/** Without LISTEN/NOTIFY: commits that notify wait for each other. */
export const polling: Settings = {
  worker: { schedule: false },
  queue: {},
  ownIds: true,
  bulkSize: 1_000,
  crew: (consumption) => {
    const atOnce = atOnceOf(consumption);
    const workers = workersOf(consumption, atOnce);
    const batchSize = Math.ceil(atOnce / workers);
    return { workers, options: { batchSize, pollingIntervalSeconds: 0.5 }, eager: true };
  },
};

export const tuned: Settings = {
  ...polling,
  worker: { ...polling.worker, useListenNotify: true },
  queue: { notify: true },
};

function atOnceOf({ shape: { ordered, limit }, permits }: Consumption): number {
  const wanted = permits ?? (ordered === true ? AT_ONCE_ORDERED : AT_ONCE);
  return Math.min(wanted, limit ?? wanted);
}

function workersOf({ shape, latency }: Consumption, atOnce: number): number {
  if (isAlone(shape)) return 1;
  const max = latency ? WORKERS_MAX_WOKEN : WORKERS_MAX;
  return Math.max(1, Math.min(Math.floor(atOnce / BATCH_MIN), max));
}

/**
 * Every fetch looks at the head of every key, so two workers pay twice for the same heads. And a group's
 * running jobs are counted without a lock: two fetches at the same time exceed the limit of a key.
 */
function isAlone({ ordered, limitPerKey }: Shape): boolean {
  return ordered === true || limitPerKey !== undefined;
}
