import { createPostgresBackend, runMigrations, withBackend } from "bullmq";
import pg from "pg";
import type { Input, Library } from "../../adapter.js";
import { askNumber } from "../ask.js";
import { adapterOf, QUEUE, type Settings, type Store } from "./adapter.js";
import { cannot, loud, version } from "./library.js";

const { Queue, Worker } = withBackend(createPostgresBackend);

// BullMQ's own count reads every row of the queue; this reads its partial indexes. A failed task
// counts as not done, so that a drain with one never looks complete.
const UNFINISHED = `
  select ((select count(*) from bullmq.job where queue = '${QUEUE}' and state = 'waiting')
    + (select count(*) from bullmq.job where queue = '${QUEUE}' and state = 'active')
    + (select count(*) from bullmq.job where queue = '${QUEUE}' and state = 'delayed')
    + (select count(*) from bullmq.job where queue = '${QUEUE}' and state = 'failed'))::int as n`;

const store: Store = {
  prepare,
  queue: (url, settings) =>
    loud(
      new Queue<Input>(QUEUE, {
        connection: connectionOf(url, settings),
        defaultJobOptions: settings.job,
      }),
    ),
  worker: (url, settings, concurrency, processor) =>
    loud(
      new Worker<Input, void>(QUEUE, processor, {
        connection: connectionOf(url, settings),
        autorun: false,
        concurrency,
      }),
    ),
  unfinished: (url) => askNumber(url, UNFINISHED),
};

const AS_SHOWN: Settings = { concurrency: 1, job: {} };
const TUNED: Settings = {
  concurrency: 16,
  workerConcurrencyMax: 250,
  connections: 16,
  job: {},
};

// There is no transactional enqueue: no operation of its backend takes a connection of the caller's.
export const bullmqPostgres: Library = {
  name: "bullmq-postgres",
  version,
  store: "postgres",
  variants: [
    {
      name: "default",
      config:
        "a Queue and a Worker as its guide shows them: one task at a time, finished ones are kept; addBulk of 1,000",
      cannot,
      adapter: adapterOf(store, AS_SHOWN),
      fills: "bullmq-postgres",
    },
    {
      name: "tuned",
      config:
        "16 tasks at once on a pool of 16 connections, as its guide asks to size them together; for more than 250 permits several Workers; addBulk of 1,000. Finished tasks are kept: removeOnComplete, which the guide advises against growth, is a further write for each task and was slower here",
      cannot,
      adapter: adapterOf(store, TUNED),
      fills: "bullmq-postgres",
    },
  ],
};

function connectionOf(url: string, { connections }: Settings) {
  return { connectionString: url, ...(connections === undefined ? {} : { max: connections }) };
}

async function prepare(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await runMigrations(client);
  } finally {
    await client.end();
  }
}
