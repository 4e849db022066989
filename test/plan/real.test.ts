import { expect, test } from "vitest";
import { sampledDurations } from "../../src/plan/durations.js";
import { planDefaults } from "../../src/plan/input.js";
import { simulate, type Simulation, type SimulationInput } from "../../src/plan/simulate/simulate.js";
import { observe, type Seen } from "./rig.js";

const sleep = (ms: number) => () => new Promise<void>((resolve) => setTimeout(resolve, ms));
const spin = (ms: number) => () => {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs);
};

const FLOOD_PER_SECOND = 5_000;

/** Simulates the same load with the durations of tasks and steps measured on this machine. */
function simulated(seen: Seen, options: Partial<SimulationInput> & { readonly permits: number }): Simulation {
  const durations = sampledDurations(seen.durationsMs);
  return simulate({
    ratePerSecond: FLOOD_PER_SECOND,
    steady: false,
    ioShare: 1,
    claimMs: seen.claimMs,
    meanMs: durations.meanMs,
    durationMs: durations.draw,
    engineMs: planDefaults.engineMs,
    processes: 1,
    cores: 2,
    lines: 2,
    batch: 50,
    seconds: 30,
    seed: 1,
    ...options,
  });
}

function expectWithin(share: number, is: number, wanted: number): void {
  expect(Math.abs(is / wanted - 1), `${is} against ${wanted}`).toBeLessThanOrEqual(share);
}

test("a worker with all permits taken matches the simulation", async () => {
  const seen = await observe({ permits: 20, tasks: 2_000, handler: sleep(25) });
  const said = simulated(seen, { permits: 20 });
  expectWithin(0.2, said.throughputPerSecond, seen.throughputPerSecond);
  expectWithin(0.2, said.inFlight.mean, seen.inFlightMean);
  expect(said.stable).toBe(false);
});

test("a worker at 60 % of its permits matches the simulation", async () => {
  const permits = 15;
  // Tasks are long enough that round trips do not saturate a slow machine.
  const seen = await observe({ permits, tasks: 200, handler: sleep(400), ratePerSecond: 22 });
  const said = simulated(seen, {
    permits,
    ratePerSecond: seen.arrivalsPerSecond,
    seconds: 600,
  });
  expectWithin(0.2, said.throughputPerSecond, seen.throughputPerSecond);
  expectWithin(0.2, said.inFlight.mean, seen.inFlightMean);
  // A wait of a few ms depends on round trips, whose length varies with the machine.
  const slackMs = Math.max(0.2 * seen.waitP50Ms, 5 + 2 * seen.claimMs);
  expect(Math.abs(said.queueWaitMs.p50 - seen.waitP50Ms)).toBeLessThanOrEqual(slackMs);
  expect(said.stable).toBe(true);
});

test("two workers that share a backlog match the simulation", async () => {
  const seen = await observe({ workers: 2, permits: 8, tasks: 1_500, handler: sleep(25) });
  const said = simulated(seen, { permits: 8, processes: 2 });
  expectWithin(0.2, said.throughputPerSecond, seen.throughputPerSecond);
  expectWithin(0.2, said.inFlight.mean, seen.inFlightMean);
});

test("a worker with CPU-bound handlers matches the simulation", async () => {
  // With a busy event loop, a round trip cannot be distinguished from the wait to read its reply.
  // Handlers are long compared with a round trip, so a machine that slows down meanwhile does not matter.
  const { claimMs } = await observe({ permits: 4, tasks: 100, handler: sleep(40) });
  const seen = await observe({ permits: 4, tasks: 100, handler: spin(40) });
  const said = simulated(seen, { permits: 4, ioShare: 0, claimMs });
  expectWithin(0.2, said.throughputPerSecond, seen.throughputPerSecond);
  expectWithin(0.2, said.inFlight.mean, 1);
});
