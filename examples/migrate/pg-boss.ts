import { setTimeout as sleep } from "node:timers/promises";
import pg from "pg";
import { Client, isSluiceError, type ErrorCode } from "../../src/client.js";
import { HELP, readOptions, UsageError, type Options } from "./pg-boss/options.js";
import { Source, type WaitingJob } from "./pg-boss/source.js";

// Moves the waiting jobs of a pg-boss queue to Sluice, in one database. Each batch is one
// transaction that enqueues the tasks and deletes the jobs: a job is in exactly one of the two,
// whatever crashes. Workers and producers of both may run meanwhile.

interface Tally {
  moved: number;
  /** Found in Sluice under their key, so only deleted from pg-boss. */
  existed: number;
  /** By job id, why Sluice refused it. */
  readonly refused: Map<string, string>;
}

const FOLLOW_EVERY_MS = 1_000;
const PRIORITY_MAX = 32_000;
// These policies limit how many jobs are active, and cannot see tasks that run in Sluice.
const ACTIVE_POLICIES = ["singleton", "stately", "exclusive", "key_strict_fifo"];
// Sluice throws these before it sends anything, so the transaction goes on.
const REFUSALS: readonly ErrorCode[] = [
  "input_invalid",
  "input_not_serialisable",
  "input_too_large",
  "input_not_storable",
  "invalid_key",
  "key_missing",
  "invalid_option",
];

/** Enqueues and deletes one batch in one transaction. */
async function moveBatch(
  client: pg.Client,
  sluice: Client,
  options: Options,
  ids: readonly string[],
): Promise<Tally> {
  const tally: Tally = { moved: 0, existed: 0, refused: new Map() };
  const source = new Source(client, options);
  await client.query("begin isolation level read committed");
  try {
    const moved: string[] = [];
    for (const job of await source.lock(ids)) {
      try {
        const { existed } = await enqueue(client, sluice, options, job);
        moved.push(job.id);
        if (existed) tally.existed++;
      } catch (e) {
        if (!REFUSALS.some((code) => isSluiceError(e, code))) throw e;
        tally.refused.set(job.id, (e as Error).message);
      }
    }
    await source.delete(moved);
    await client.query("commit");
    tally.moved = moved.length;
    return tally;
  } catch (e) {
    await client.query("rollback").catch(() => {});
    throw e;
  }
}

function enqueue(tx: pg.Client, sluice: Client, options: Options, job: WaitingJob) {
  const { task, inputOf, pgBossSchema } = options;
  // An order key waits for a task that is retried, but not for one that is due later.
  const retriedInOrder = task.ordered && job.attemptsUsed > 0;
  return sluice.enqueue(task, inputOf(job), {
    tx,
    idempotencyKey: `${pgBossSchema}:${job.id}`,
    priority: Math.max(-PRIORITY_MAX, Math.min(PRIORITY_MAX, job.priority)),
    ...(retriedInOrder ? {} : { runAt: job.startAfter }),
  });
}

/** Moves what waits now, until a pass moves nothing. What is sent meanwhile is for the next call. */
async function moveWaiting(
  client: pg.Client,
  sluice: Client,
  options: Options,
  stop: AbortSignal,
  total: Tally,
): Promise<void> {
  const source = new Source(client, options);
  const until = await source.now();
  for (let before = -1; before !== total.moved && !stop.aborted;) {
    before = total.moved;
    const ids = await source.waiting(until);
    for (let from = 0; from < ids.length && !stop.aborted; from += options.batch) {
      const part = ids.slice(from, from + options.batch);
      const { moved, existed, refused } = await moveBatch(client, sluice, options, part);
      total.moved += moved;
      total.existed += existed;
      for (const [id, why] of refused) {
        if (!total.refused.has(id)) console.log(`job ${id} stays: ${why}`);
        total.refused.set(id, why);
      }
      if (moved > 0) console.log(`moved ${total.moved}`);
    }
  }
}

async function move(client: pg.Client, options: Options, stop: AbortSignal): Promise<number> {
  const source = new Source(client, options);
  const { policy, waiting, active, flows } = await source.counts();
  console.log(
    `${options.queue}: ${waiting} waiting, ${active} active, ${flows} in flows (${policy})`,
  );
  if (options.dryRun) return 0;
  if (active > 0 && ACTIVE_POLICIES.includes(policy) && !options.whileActive) {
    console.error(
      `the policy ${policy} limits active jobs, and ${active} are active: stop the queue's pg-boss ` +
        "workers first, or pass --while-active",
    );
    return 1;
  }
  const { url, schema } = options;
  const total: Tally = { moved: 0, existed: 0, refused: new Map() };
  const sluice = await Client.connect({
    url,
    ...(schema === undefined ? {} : { schema }),
    listen: false,
  });
  try {
    do {
      await moveWaiting(client, sluice, options, stop, total);
      if (options.follow) await sleep(FOLLOW_EVERY_MS, null, { signal: stop }).catch(() => {});
    } while (options.follow && !stop.aborted);
  } finally {
    await sluice.close();
  }
  const left = await source.counts();
  console.log(
    `done: ${total.moved} moved (${total.existed} were in Sluice already), ${total.refused.size} refused; ` +
      `left in pg-boss: ${left.waiting} waiting, ${left.active} active, ${left.flows} in flows`,
  );
  return total.refused.size > 0 ? 1 : 0;
}

async function main(): Promise<number> {
  const options = await readOptions(process.argv.slice(2));
  if (options === null) {
    console.log(HELP.trimEnd());
    return 0;
  }
  const stop = new AbortController();
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => stop.abort());
  const client = new pg.Client({ connectionString: options.url });
  await client.connect();
  try {
    return await move(client, options, stop.signal);
  } finally {
    await client.end();
  }
}

try {
  process.exitCode = await main();
} catch (e) {
  console.error((e as Error).message);
  process.exitCode = e instanceof UsageError ? 2 : 1;
}
