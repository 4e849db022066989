import { setTimeout as sleep } from "node:timers/promises";
import { Queue, Worker } from "bullmq";
import { Redis } from "ioredis";
import type { Input, Library } from "../../adapter.js";
import { adapterOf, QUEUE, type Settings, type Store } from "./adapter.js";
import { cannot, loud, version } from "./library.js";

const REWRITE_POLL_MS = 10;
const REWRITE_POLLS_MAX = 1_000;

const store: Store = {
  prepare: empty,
  queue: (url, { job }) => loud(queueOf(url, job)),
  worker: (url, _, concurrency, processor) =>
    loud(
      new Worker<Input, void>(QUEUE, processor, {
        connection: { url },
        autorun: false,
        concurrency,
      }),
    ),
  unfinished,
};

const AS_SHOWN: Settings = { concurrency: 1, job: {} };
const TUNED: Settings = {
  concurrency: 100,
  workerConcurrencyMax: 250,
  job: { removeOnComplete: true },
};

export const bullmqRedis: Library = {
  name: "bullmq-redis",
  version,
  store: "redis",
  variants: [
    {
      name: "default",
      config:
        "a Queue and a Worker as the README shows them: one task at a time, finished ones are kept; addBulk of 1,000",
      cannot,
      adapter: adapterOf(store, AS_SHOWN),
    },
    {
      name: "tuned",
      config:
        "one Worker with a concurrency of 100, so that many commands share a round trip; for more than 250 permits several Workers; removeOnComplete, so that Redis stays small; addBulk of 1,000. For no-ops more Workers, more concurrency and automatic pipelining gain nothing: Node itself is the bound",
      cannot,
      adapter: adapterOf(store, TUNED),
    },
  ],
};

function queueOf(url: string, job: Settings["job"]): Queue<Input> {
  return new Queue<Input>(QUEUE, { connection: { url }, defaultJobOptions: job });
}

/**
 * Empties Redis, and its log with it: the log is not rewritten while something is measured, so in a
 * long bench it would fill the disk.
 */
async function empty(url: string): Promise<void> {
  const redis = new Redis(url);
  try {
    await redis.flushall();
    if (!/^aof_enabled:1/m.test(await redis.info("persistence"))) return;
    await redis.bgrewriteaof();
    for (let polls = 0; polls < REWRITE_POLLS_MAX; polls++) {
      if (!/^aof_rewrite_(scheduled|in_progress):1/m.test(await redis.info("persistence"))) return;
      await sleep(REWRITE_POLL_MS);
    }
    throw new Error("Redis does not end the rewriting of its log");
  } finally {
    redis.disconnect();
  }
}

/** A failed task counts as not done, so that a drain with one never looks complete. */
async function unfinished(url: string): Promise<number> {
  const queue = loud(queueOf(url, {}));
  try {
    return await queue.getJobCountByTypes("waiting", "active", "delayed", "failed");
  } finally {
    await queue.close();
  }
}
