import { describe, expect, test } from "vitest";
import { task, type, type Worker } from "../../../src/index.js";
import { scene, signal, until, type Scene } from "../../flow/scene.js";

// Nothing here may be waiting for a poll.
const SLOW_POLL_MS = 60_000;
// What the machine itself is short of is not to be seen here.
const calm = { memoryPercentMax: false, eventLoopDelayMsMax: false } as const;
const job = task("job", { input: type<number>() });
const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

async function row(s: Scene): Promise<{ pressure: string; reasons: string[]; free: number }> {
  const { rows } = await s.sql.query(
    "select pressure, pressure_reasons as reasons, capacity_available as free from sluice.worker",
  );
  return rows[0];
}

async function allDone(s: Scene, count: number): Promise<void> {
  await until("all to end", async () => (await s.sluice.counts()).succeeded === count);
}

/** Counts how many handlers are started in one go: what one claim brought. */
class Gulps {
  largest = 0;
  #now = 0;

  started(): void {
    if (this.#now++ === 0) queueMicrotask(() => (this.#now = 0));
    this.largest = Math.max(this.largest, this.#now);
  }
}

describe("a worker whose tasks take too long", () => {
  test("a worker whose tasks take too long reports it in its status and its row, and claims 70 % of a batch", async () => {
    const s = await scene();
    let gulps = new Gulps();
    const handler = job.handle(async () => {
      gulps.started();
      await new Promise((resolve) => setTimeout(resolve, 5));
    });
    const worker = await s.worker({
      handlers: [handler],
      claimBatchSize: 50,
      pressure: { ...calm, taskDurationP99MsMax: 1 },
    });
    await s.sluice.enqueueMany(job, numbers(500));
    await allDone(s, 500);
    await until("pressure", () => worker.status().pressure.reasons.includes("task_duration"));
    // The first claims were as large as a batch; from now on none is.
    const early = gulps.largest;
    gulps = new Gulps();
    await s.sluice.enqueueMany(job, numbers(500));
    await allDone(s, 1_000);
    expect([early, gulps.largest]).toEqual([50, 35]);
    await until("the row", async () => (await row(s)).pressure === "reduced");
    expect((await row(s)).reasons).toContain("task_duration");
  });
});

describe("a worker whose permits are nearly all in use", () => {
  /** A worker with this many permits, and a function that ends its first handlers, or all. */
  async function held(
    s: Scene,
    maxConcurrentTasks = 40,
  ): Promise<{
    worker: Worker;
    started: () => number;
    release: (tasks: number) => void;
  }> {
    const gates: (() => void)[] = [];
    let [started, released] = [0, 0];
    const handler = job.handle(async () => {
      started++;
      if (released < started) await new Promise<void>((resolve) => gates.push(resolve));
    });
    const worker = await s.worker({
      handlers: [handler],
      maxConcurrentTasks,
      pollIntervalMs: SLOW_POLL_MS,
      pressure: calm,
    });
    const release = (tasks: number): void => {
      released += tasks;
      for (const open of gates.splice(0, tasks)) open();
    };
    return { worker, started: () => started, release };
  }

  test("a worker without free permits reports stopped, and continues when permits return", async () => {
    const s = await scene();
    const { worker, release } = await held(s);
    await s.sluice.enqueueMany(job, numbers(60));
    await until("its permits to be taken", () => worker.status().inFlight === 40);
    expect(worker.status().pressure).toEqual({ state: "stopped", reasons: ["permits"] });
    await until("the row", async () => (await row(s)).pressure === "stopped");
    expect(await row(s)).toEqual({ pressure: "stopped", reasons: ["permits"], free: 0 });
    release(60);
    await allDone(s, 60);
    await until("the row", async () => (await row(s)).pressure === "normal");
  });

  test("a worker with less than 10 % free permits only replaces settled tasks, without a poll", async () => {
    const s = await scene();
    const { worker, started, release } = await held(s);
    // One at a time, so that no claim takes more: 37 of 40 leave three, which is fewer than a tenth.
    for (let n = 1; n <= 37; n++) {
      await s.sluice.enqueue(job, n);
      await until(`${n} in flight`, () => started() === n);
    }
    await s.sluice.enqueueMany(job, numbers(5));
    for (let n = 38; n <= 40; n++) {
      release(1);
      // In the statement that settles the one that ended. Its reply also leads to the next look.
      await until(`${n} started`, () => started() === n);
      expect(worker.status().permitsInUse).toBe(37);
    }
    await until("the row", async () => (await row(s)).pressure === "stopped");
    expect(started()).toBe(40);
    release(42);
    await allDone(s, 42);
  });

  test("a full worker passes its rings on to other workers, without a poll", async () => {
    const s = await scene();
    const { worker, started, release } = await held(s, 80);
    for (let n = 1; n <= 73; n++) {
      await s.sluice.enqueue(job, n);
      await until(`${n} in flight`, () => started() === n);
    }
    // Two tasks end and none replaces them, and still fewer than an eighth are free. A worker with room would sleep now.
    for (const left of [72, 71]) {
      release(1);
      await until("it to be recorded", () => worker.status().permitsInUse === left);
    }
    const asleep = "select asleep from sluice.worker where id = $1";
    const { rows } = await s.sql.query<{ asleep: boolean }>(asleep, [worker.status().id]);
    expect(rows).toEqual([{ asleep: false }]);
    // A worker that fell asleep before it was full is not rung for tasks it cannot claim, once its row says so.
    await until("the row", async () => (await row(s)).free === 0);
    await s.sql.query("update sluice.worker set asleep = true");
    let others = 0;
    const other = await s.worker({
      handlers: [job.handle(() => void others++)],
      pollIntervalMs: SLOW_POLL_MS,
    });
    await until("the other to sleep", async () => {
      const found = await s.sql.query<{ asleep: boolean }>(asleep, [other.status().id]);
      return found.rows[0]!.asleep;
    });
    for (let n = 1; n <= 12; n++) {
      await s.sluice.enqueue(job, n);
      await until(`${n} with the other`, () => others === n);
    }
    release(80);
    await allDone(s, 85);
  });
});

test("a worker with a full payload bound stops, and continues without a poll when bytes are free", async () => {
  const s = await scene();
  const heavy = task("heavy", { input: type<string>() });
  const gate = signal();
  const worker = await s.worker({
    handlers: [heavy.handle(() => gate.promise)],
    payloadBytesInFlightMax: 512 * 1024,
    pollIntervalMs: SLOW_POLL_MS,
    pressure: calm,
  });
  await s.sluice.enqueueMany(
    heavy,
    numbers(40).map(() => "x".repeat(64 * 1024)),
  );
  await until("the bytes to be used up", () => worker.status().pressure.state === "stopped");
  expect(worker.status().pressure.reasons).toEqual(["payload"]);
  await until("the row", async () => (await row(s)).pressure === "stopped");
  expect(await row(s)).toEqual({ pressure: "stopped", reasons: ["payload"], free: 0 });
  expect(worker.status().inFlight).toBeLessThanOrEqual(8);
  gate.resolve();
  await allDone(s, 40);
  await until("the row", async () => (await row(s)).pressure === "normal");
});

test("a handler that runs for many leases neither delays others nor loses its lease", async () => {
  const s = await scene();
  const leaseMs = 2_000;
  const slow = task("slow");
  const end = signal();
  const aborted: unknown[] = [];
  const handlers = [
    slow.handle(async (_, ctx) => {
      ctx.signal.addEventListener("abort", () => aborted.push(ctx.signal.reason));
      await end.promise;
    }),
    job.handle(() => {}),
  ];
  const worker = await s.worker({ handlers, leaseMs, maxConcurrentTasks: 3 });
  const long = await s.sluice.enqueue(slow);
  await until("the slow one to run", () => worker.status().inFlight === 1);
  const id = worker.status().id;
  const from = performance.now();
  let others = 0;
  while (performance.now() - from < 6 * leaseMs) {
    await (await s.sluice.enqueue(job, others++)).result({ timeoutMs: 10_000 });
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  expect(others).toBeGreaterThan(20);
  end.resolve();
  await long.result({ timeoutMs: 10_000 });
  // One run, in the first attempt, under the first lease.
  expect((await long.status())?.attempt).toBe(1);
  expect([worker.status().id, worker.status().refused, aborted]).toEqual([id, 0, []]);
});
