import type { DefaultJobOptions, Job } from "bullmq";
import type { Adapter, Consumer, Consumption, Input, Producer, Shape } from "../../adapter.js";

/** What differs between the variants. */
export interface Settings {
  /** Tasks that a process runs at once, if the workload does not say. */
  readonly concurrency: number;
  /**
   * How many of them one worker may run; for more there are more workers. A worker takes its first
   * tasks one after the other, so a single one with a thousand permits needs long to fill them.
   */
  readonly workerConcurrencyMax?: number;
  /** The most connections of a pool, where there is one. */
  readonly connections?: number;
  readonly job: DefaultJobOptions;
}

/** Where BullMQ keeps its jobs. */
export interface Store {
  /** Makes what jobs are kept in, or empties it. */
  prepare(url: string): Promise<void>;
  queue(url: string, settings: Settings): QueueDoor;
  /** A worker that does not run yet. */
  worker(url: string, settings: Settings, concurrency: number, processor: Processor): WorkerDoor;
  unfinished(url: string): Promise<number>;
}

/** The part of a Queue that we use, whatever it keeps jobs in. */
export interface QueueDoor {
  waitUntilReady(): Promise<unknown>;
  add(name: string, data: Input): Promise<unknown>;
  addBulk(jobs: { name: string; data: Input }[]): Promise<unknown>;
  setGlobalConcurrency(limit: number): Promise<unknown>;
  close(): Promise<void>;
}

/** The part of a Worker that we use. */
export interface WorkerDoor {
  waitUntilReady(): Promise<unknown>;
  run(): Promise<void>;
  close(): Promise<void>;
}

export type Processor = (job: Job<Input>) => Promise<void>;

export const QUEUE = "tasks";
const JOB = "task";

// One addBulk is one pipeline on Redis and one statement on PostgreSQL. Calls of 100 are slower on
// both; calls of more than 1,000 are slower on Redis and no faster on PostgreSQL.
const BULK = 1_000;
// Each has connections of its own, and PostgreSQL does not have many.
const WORKERS_MAX = 4;

export function adapterOf(store: Store, settings: Settings): Adapter {
  return {
    install: (url, shape) => install(store, settings, url, shape),
    produce: (url) => produce(store, settings, url),
    consume: (url, consumption) => consume(store, settings, url, consumption),
    unfinished: (url) => store.unfinished(url),
  };
}

async function install(store: Store, settings: Settings, url: string, { limit }: Shape): Promise<void> {
  await store.prepare(url);
  if (limit === undefined) return;
  const queue = store.queue(url, settings);
  try {
    await queue.setGlobalConcurrency(limit);
  } finally {
    await queue.close();
  }
}

async function produce(store: Store, settings: Settings, url: string): Promise<Producer> {
  const queue = store.queue(url, settings);
  await queue.waitUntilReady();
  return {
    enqueueMany: async (inputs) => {
      for (let from = 0; from < inputs.length; from += BULK) {
        const some = inputs.slice(from, from + BULK);
        await queue.addBulk(some.map((data) => ({ name: JOB, data })));
      }
    },
    enqueueOne: async (input) => void (await queue.add(JOB, input)),
    close: () => queue.close(),
  };
}

async function consume(
  store: Store,
  settings: Settings,
  url: string,
  { shape, permits, work }: Consumption,
): Promise<Consumer> {
  const processor: Processor = async ({ data }) => work(data);
  const workers = shares(settings, permits, shape).map((concurrency) =>
    store.worker(url, settings, concurrency, processor),
  );
  await Promise.all(workers.map((worker) => worker.waitUntilReady()));
  let running: Promise<unknown> | undefined;
  return {
    start: async () => {
      running = Promise.all(workers.map((worker) => worker.run()));
    },
    stop: async () => {
      await Promise.all(workers.map((worker) => worker.close()));
      await running;
    },
  };
}

/**
 * The concurrency of each worker of a process. More than the limit over all processes is of no use:
 * such a worker asks and is given nothing.
 */
function shares(settings: Settings, permits: number | null, { limit }: Shape): number[] {
  const all = Math.min(permits ?? settings.concurrency, limit ?? Number.POSITIVE_INFINITY);
  const { workerConcurrencyMax = all } = settings;
  const workers = Math.min(WORKERS_MAX, Math.ceil(all / workerConcurrencyMax));
  return Array.from({ length: workers }, (_, i) => Math.floor((all + i) / workers));
}
