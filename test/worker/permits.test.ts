import { setTimeout } from "node:timers/promises";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { task, type } from "../../src/index.js";
import { Permits } from "../../src/worker/permits.js";
import { crowd } from "../support/crowd.js";
import { scene, until } from "../flow/scene.js";
import { World, type Fate, type WorldOptions } from "./harness.js";

test("there are never more tasks in flight than permits", async () => {
  const permits = new Permits(3);
  permits.take(2);
  expect(() => permits.take(2)).toThrow("2 permits requested, 1 free");
  permits.take(1);
  expect(permits.free).toBe(0);

  // And so it is in a worker that several lines claim for, counted by its own handlers.
  const s = await scene();
  const job = task("job", { input: type<number>() });
  await s.sluice.enqueueMany(
    job,
    Array.from({ length: 400 }, (_, i) => i),
  );
  const permitted = crowd(7);
  const handler = job.handle(() => permitted.pass(() => setTimeout(3)));
  const worker = await s.worker({
    handlers: [handler],
    maxConcurrentTasks: 7,
    claimBatchSize: 5,
    claimLoops: 3,
    dbConnections: 20,
  });
  await until("all to end", async () => (await s.sluice.counts()).succeeded === 400);
  expect(permitted.peak).toBe(7);
  await until("the permits to come back", () => worker.status().permitsInUse === 0);
});

test("a permit that is not taken cannot be returned", () => {
  const permits = new Permits(2);
  permits.take(1);
  expect(() => permits.give(2)).toThrow("2 permits given back, 1 in use");
});

describe("any order of delayed, lost and late replies", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] }));
  afterEach(() => void vi.useRealTimers());

  const fate = fc.oneof(
    { weight: 12, arbitrary: fc.constant<Fate>("arrives") },
    {
      weight: 1,
      arbitrary: fc.constantFrom<Fate[]>("request lost", "reply lost", "lease expires"),
    },
  );
  const options = fc.record({
    scheduler: fc.scheduler(),
    tasks: fc.integer({ min: 1, max: 25 }),
    permits: fc.integer({ min: 1, max: 6 }),
    batchMax: fc.integer({ min: 1, max: 8 }),
    lines: fc.integer({ min: 1, max: 3 }),
    fates: fc.array(fate, { maxLength: 40 }),
    throws: fc.array(fc.boolean(), { maxLength: 15 }),
  });

  async function play(world: World): Promise<void> {
    for (let turn = 0; !world.over && turn < 2_000; turn++) {
      if (world.scheduler.count() > 0) await world.scheduler.waitOne();
      else {
        world.beat();
        await vi.advanceTimersByTimeAsync(100);
      }
      await new Promise((resolve) => setImmediate(resolve));
    }
    world.claimer.stop();
  }

  async function holds(given: WorldOptions): Promise<void> {
    const world = new World(given);
    await play(world);
    expect(world.handlersMax).toBeLessThanOrEqual(given.permits);
    expect(world.heldMax).toBeLessThanOrEqual(given.permits);
    expect(world.permits.inUse).toBe(0);
    expect(world.outbox.size).toBe(0);
    expect([...world.db.accepted.values()]).toEqual(Array.from({ length: given.tasks }, () => 1));
  }

  test("permits are never exceeded and never leak, and every task is accepted once", async () => {
    await fc.assert(fc.asyncProperty(options, holds), { numRuns: 150 });
  });
});
