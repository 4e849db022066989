// How long claims take beside a backlog of a million, and what a snapshot that is held does to that.
import pg from "pg";
import { startEmbedded } from "../../src/embedded/index.js";
import { Sluice, task, type } from "../../src/index.js";
import { quantile } from "../samples.js";

const BACKLOG = 1_000_000;
const CALM_SECONDS = 20;
const HELD_SECONDS = 60;
const TASK_MS = 5;
const IN_FLIGHT = 40;

export interface SnapshotFigures {
  readonly backlog: number;
  readonly heldSeconds: number;
  /** Of steps that claim, as the worker waits for them. */
  readonly calmMs: { readonly p50: number; readonly p99: number };
  readonly heldMs: { readonly p50: number; readonly p99: number };
  readonly tasksPerSecond: { readonly calm: number; readonly held: number };
  /** Rows that the snapshot keeps alive at its end. */
  readonly deadRows: number;
}

export async function snapshotFigures(tell: (line: string) => void): Promise<SnapshotFigures> {
  const server = await startEmbedded({ settings: { shared_buffers: "512MB", fsync: "off" } });
  const sluice = await Sluice.connect({ url: server.url, history: { succeededMs: 0 } });
  const holder = new pg.Client(server.url);
  const steps = timeSteps();
  try {
    await holder.connect();
    const noop = task("noop", { input: type<number>() });
    tell(`enqueueing ${BACKLOG} tasks`);
    await sluice.enqueueMany(noop, numbers(BACKLOG));
    await holder.query("vacuum (analyze) sluice.ready");
    let done = 0;
    const handler = noop.handle(async () => {
      await new Promise((resolve) => setTimeout(resolve, TASK_MS));
      done++;
    });
    const worker = sluice.worker({ handlers: [handler], maxConcurrentTasks: IN_FLIGHT });
    await worker.start();
    const measure = async (seconds: number): Promise<{ ms: number[]; rate: number }> => {
      const [before, from] = [done, steps.ms.length];
      await new Promise((resolve) => setTimeout(resolve, seconds * 1_000));
      return { ms: steps.ms.slice(from), rate: (done - before) / seconds };
    };
    // What is planned and cached first is not what claims cost.
    await measure(3);
    tell(`${CALM_SECONDS} s without a snapshot`);
    const calm = await measure(CALM_SECONDS);
    await holder.query("begin isolation level repeatable read");
    await holder.query("select count(*) from sluice.limits");
    tell(`${HELD_SECONDS} s with one`);
    const held = await measure(HELD_SECONDS);
    const { rows } = await holder.query<{ n: string }>(
      "select n_dead_tup as n from pg_stat_user_tables where schemaname = 'sluice' and relname = 'ready'",
    );
    await worker.stop();
    return {
      backlog: BACKLOG,
      heldSeconds: HELD_SECONDS,
      calmMs: spreadOf(calm.ms),
      heldMs: spreadOf(held.ms),
      tasksPerSecond: { calm: Math.round(calm.rate), held: Math.round(held.rate) },
      deadRows: Number(rows[0]!.n),
    };
  } finally {
    steps.stop();
    await holder.end();
    await sluice.close();
    await server.stop();
  }
}

function spreadOf(ms: readonly number[]): { p50: number; p99: number } {
  const sorted = ms.toSorted((a, b) => a - b);
  const of = (share: number): number => Math.round((quantile(sorted, share) ?? 0) * 100) / 100;
  return { p50: of(0.5), p99: of(0.99) };
}

function* numbers(n: number): Generator<number> {
  for (let i = 0; i < n; i++) yield i;
}

type Query = (this: unknown, ...args: unknown[]) => Promise<unknown>;

/** Listens to the driver until it is told to stop: every step of this process, from the call to its reply. */
function timeSteps(): { readonly ms: number[]; readonly stop: () => void } {
  const ms: number[] = [];
  const prototype = pg.Client.prototype as unknown as { query: Query };
  const { query } = prototype;
  prototype.query = function timed(...args) {
    const from = performance.now();
    const answer = query.apply(this, args);
    if (!(args[0] as { name?: string }).name?.endsWith(".step")) return answer;
    return answer.then((reply) => {
      ms.push(performance.now() - from);
      return reply;
    });
  };
  return { ms, stop: () => void (prototype.query = query) };
}
