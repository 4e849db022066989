import { onTestFinished, vi } from "vitest";
import { Sluice, task, type } from "../../src/index.js";
import { Connection } from "../../src/postgres/connection.js";
import { exponential, randomOf } from "../../src/plan/simulate/random.js";
import { freshDatabase } from "../support/database.js";

/** A load for real workers in this process. */
export interface Load {
  /** The number of workers, each with its own permits. Default 1. */
  readonly workers?: number;
  readonly permits: number;
  readonly tasks: number;
  readonly handler: () => Promise<void> | void;
  /** Arrivals per second at random intervals. Without it, all tasks exist before the worker starts. */
  readonly ratePerSecond?: number;
}

/** Measurements from outside: by the handlers, the producer and an observer of the worker's statements. */
export interface Seen {
  readonly throughputPerSecond: number;
  readonly arrivalsPerSecond: number;
  readonly inFlightMean: number;
  readonly waitP50Ms: number;
  /** The durations of the handlers. */
  readonly durationsMs: readonly number[];
  /** The mean duration of a step. */
  readonly claimMs: number;
}

interface Run {
  readonly arrivedMs: number;
  readonly beganMs: number;
  readonly endedMs: number;
}

// The start and the end of a run are not measured.
const EDGE = 0.1;

/** Runs a load on real workers. */
export async function observe(load: Load): Promise<Seen> {
  const database = await freshDatabase({ migrated: true });
  onTestFinished(() => database.drop());
  const sluice = await Sluice.connect({ url: database.url, migrate: false });
  onTestFinished(() => sluice.close());
  const work = task("work", { input: type<{ n: number }>() });
  const arrived = Array.from({ length: load.tasks }, () => 0);
  const runs: (Omit<Run, "arrivedMs"> & { n: number })[] = [];
  let tellAll = (): void => {};
  const all = new Promise<void>((resolve) => (tellAll = resolve));
  const handler = work.handle(async ({ n }) => {
    const beganMs = performance.now();
    const done = load.handler();
    // A task without I/O must not wait here for all tasks that started with it.
    if (done !== undefined) await done;
    runs.push({ n, beganMs, endedMs: performance.now() });
    if (runs.length === load.tasks) tellAll();
  });
  const workers = Array.from({ length: load.workers ?? 1 }, () =>
    sluice.worker({ handlers: [handler], maxConcurrentTasks: load.permits }),
  );
  const start = (): Promise<unknown> => Promise.all(workers.map((worker) => worker.start()));
  const steps = watchSteps();
  const inputs = Array.from({ length: load.tasks }, (_, n) => ({ n }));
  if (load.ratePerSecond === undefined) {
    await sluice.enqueueMany(work, inputs);
    await start();
  } else {
    await start();
    await arriveAtRandom(load.ratePerSecond, inputs, async (input) => {
      await sluice.enqueue(work, input);
      arrived[input.n] = performance.now();
    });
  }
  await all;
  const claimMs = steps.end();
  await Promise.all(workers.map((worker) => worker.stop()));
  return seenOf(
    runs.map(({ n, ...run }) => ({ ...run, arrivedMs: arrived[n]! })),
    claimMs,
  );
}

/** Enqueues each task at its time, without waiting for earlier replies. */
async function arriveAtRandom<T>(
  ratePerSecond: number,
  inputs: readonly T[],
  enqueue: (input: T) => Promise<void>,
): Promise<void> {
  const random = randomOf(7);
  const sent: Promise<void>[] = [];
  let dueMs = performance.now();
  for (const input of inputs) {
    dueMs += exponential(random, 1000 / ratePerSecond);
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    sent.push(enqueue(input));
  }
  await Promise.all(sent);
}

function watchSteps(): { end(): number } {
  const tookMs: number[] = [];
  // oxlint-disable-next-line typescript/unbound-method -- called with its line below
  const rows = Connection.prototype.rows;
  const spy = vi.spyOn(Connection.prototype, "rows");
  spy.mockImplementation(async function (this: Connection, ...args) {
    const sentMs = performance.now();
    const reply = await rows.apply(this, args);
    tookMs.push(performance.now() - sentMs);
    return reply;
  });
  return {
    end() {
      spy.mockRestore();
      return tookMs.reduce((sum, ms) => sum + ms, 0) / tookMs.length;
    },
  };
}

function seenOf(runs: readonly Run[], claimMs: number): Seen {
  const ended = runs.map(({ endedMs }) => endedMs).toSorted((a, b) => a - b);
  const [first, last] = [Math.floor(EDGE * ended.length), Math.ceil((1 - EDGE) * ended.length) - 1];
  const [fromMs, toMs] = [ended[first]!, ended[last]!];
  const overlapMs = ({ beganMs, endedMs }: Run): number =>
    Math.max(0, Math.min(endedMs, toMs) - Math.max(beganMs, fromMs));
  const inside = runs.filter(({ beganMs }) => beganMs >= fromMs && beganMs <= toMs);
  const arrivals = runs.map(({ arrivedMs }) => arrivedMs).toSorted((a, b) => a - b);
  // The worker may see the commit before the producer does.
  const waits = inside.map(({ arrivedMs, beganMs }) => Math.max(0, beganMs - arrivedMs));
  return {
    throughputPerSecond: (1000 * (last - first)) / (toMs - fromMs),
    arrivalsPerSecond: (1000 * (arrivals.length - 1)) / (arrivals.at(-1)! - arrivals[0]!),
    inFlightMean: runs.reduce((sum, run) => sum + overlapMs(run), 0) / (toMs - fromMs),
    waitP50Ms: waits.toSorted((a, b) => a - b)[Math.floor(waits.length / 2)]!,
    durationsMs: runs.map(({ beganMs, endedMs }) => endedMs - beganMs),
    claimMs,
  };
}
