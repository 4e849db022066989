import { describe, expect, test } from "vitest";
import { exponential } from "../../src/plan/simulate/random.js";
import { simulate, type SimulationInput } from "../../src/plan/simulate/simulate.js";

const MEAN_MS = 100;

/** A database without latency, which leaves a textbook queue. */
const ideal: SimulationInput = {
  ratePerSecond: 7,
  steady: false,
  meanMs: MEAN_MS,
  durationMs: (random) => exponential(random, MEAN_MS),
  ioShare: 1,
  permits: 1,
  lines: 2,
  batch: 50,
  claimMs: 0,
  engineMs: 0,
  processes: 1,
  cores: 1,
  seconds: 43_000,
  seed: 1,
};

/** Realistic processes for one minute. */
const minute: SimulationInput = {
  ...ideal,
  ratePerSecond: 200,
  ioShare: 0.9,
  permits: 20,
  claimMs: 3,
  engineMs: 0.1,
  processes: 2,
  cores: 2,
  seconds: 60,
};

function expectNear(is: number, wanted: number, share: number): void {
  expect(Math.abs(is / wanted - 1), `${is} against ${wanted}`).toBeLessThanOrEqual(share);
}

/** The mean wait for one of this many servers (Erlang C). */
function waitMs(servers: number, load: number): number {
  let [term, sum] = [1, 0];
  for (let n = 0; n < servers; n++) {
    sum += term;
    term *= load / (n + 1);
  }
  const all = (term * servers) / (servers - load);
  return ((all / (sum + all)) * MEAN_MS) / (servers - load);
}

describe("the simulation matches theory", () => {
  test.each([
    [1, 0.5],
    [1, 0.7],
    [2, 0.8],
    [5, 0.8],
    [9, 0.7],
  ])("for %i permits at utilisation %d: waits follow the Erlang C formula", (permits, used) => {
    const load = permits * used;
    const ratePerSecond = (load * 1000) / MEAN_MS;
    const said = simulate({ ...ideal, permits, ratePerSecond, seconds: 300_000 / ratePerSecond });
    expectNear(said.queueWaitMs.mean, waitMs(permits, load), 0.05);
    expectNear(said.permitUtilisation, used, 0.02);
    expectNear(said.inFlight.mean, load, 0.02);
  });

  test("for tasks of constant length: waits are half of those of exponential lengths", () => {
    const said = simulate({ ...ideal, durationMs: () => MEAN_MS });
    expectNear(said.queueWaitMs.mean, (MEAN_MS * 0.7) / (2 * 0.3), 0.04);
  });

  test("for CPU-bound tasks: waits depend on one event loop, however many permits there are", () => {
    const said = simulate({ ...ideal, ioShare: 0, permits: 200, batch: 200, cores: 4 });
    expectNear(said.queueWaitMs.mean, (MEAN_MS * 0.7) / 0.3, 0.05);
    expectNear(said.loopUtilisation, 0.7, 0.02);
    expectNear(said.coreUtilisation, 0.7 / 4, 0.02);
    expect(said.inFlight.max).toBe(1);
  });

  test("for processes that share cores: four on two cores have the throughput of two", () => {
    const many = { ...ideal, ioShare: 0, permits: 2, ratePerSecond: 100, seconds: 500, cores: 2 };
    const [two, four] = [2, 4].map((processes) => simulate({ ...many, processes }));
    expectNear(two!.throughputPerSecond, 20, 0.03);
    expectNear(four!.throughputPerSecond, 20, 0.03);
    expectNear(four!.coreUtilisation, 1, 0.01);
    expectNear(four!.loopUtilisation, 0.5, 0.01);
  });

  test("for a full worker: throughput is permits / (duration + round trip)", () => {
    const full = { ...minute, processes: 1, ioShare: 1, engineMs: 0, durationMs: () => 25 };
    const said = simulate({ ...full, meanMs: 25, permits: 9, claimMs: 5, ratePerSecond: 2_000 });
    expectNear(said.throughputPerSecond, 9_000 / 30, 0.03);
    expectNear(said.permitUtilisation, 1, 0.01);
  });

  test("for claims of one task: throughput is bound by the claim lines", () => {
    const one = { ...minute, processes: 1, ioShare: 1, engineMs: 0, permits: 500, batch: 1 };
    const said = simulate({ ...one, claimMs: 10, ratePerSecond: 1_000, lines: 3 });
    expectNear(said.throughputPerSecond, 300, 0.03);
  });
});

describe("every simulation", () => {
  test.each([
    ["a stable run", minute],
    ["a flooded run", { ...minute, ratePerSecond: 5_000 }],
    ["a CPU-bound run", { ...minute, ioShare: 0 }],
    ["a run of tasks without duration", { ...minute, durationMs: () => 0, meanMs: 0, engineMs: 0 }],
    ["a run of one process with one permit", { ...minute, processes: 1, permits: 1 }],
    ["a run with evenly spaced arrivals", { ...minute, steady: true }],
  ])("loses and doubles no task in %s", (_, input) => {
    const said = simulate(input);
    expect(said.arrived).toBe(said.done + said.waiting + said.held);
    expect(said.done).toBeGreaterThan(0);
    expect(said.held).toBeLessThanOrEqual(input.permits * input.processes);
    expect(said.inFlight.max).toBeLessThanOrEqual(input.permits * input.processes);
    expect(said.permitUtilisation).toBeLessThanOrEqual(1 + 1e-9);
    expect(said.coreUtilisation).toBeLessThanOrEqual(1.01);
  });

  test("is determined by its seed", () => {
    expect(simulate(minute)).toEqual(simulate(minute));
    expect(simulate({ ...minute, seed: 2 }).arrived).not.toBe(simulate(minute).arrived);
  });

  test("has a fixed number of arrivals if the load is steady", () => {
    const said = simulate({ ...minute, steady: true });
    expect(Math.abs(said.arrived - 200 * 60)).toBeLessThanOrEqual(1);
  });

  test("is unstable above its capacity, and its backlog grows by the difference", () => {
    const said = simulate({ ...minute, ioShare: 1, permits: 5, durationMs: () => 100 });
    expect(said.stable).toBe(false);
    expectNear(said.throughputPerSecond, 10_000 / 103.1, 0.03);
    expectNear(said.backlogGrowthPerSecond, 200 - 10_000 / 103.1, 0.05);
    expect(said.waiting).toBeGreaterThan(5_000);
  });

  test.each([1, 2, 3, 4, 5])("is stable at a load of 90 %, with seed %i", (seed) => {
    const said = simulate({ ...ideal, permits: 9, ratePerSecond: 81, seconds: 60, seed });
    expect(said.stable).toBe(true);
  });

  test("is bounded in time and memory by simulating less time under a huge load", () => {
    const shares: number[] = [];
    const much = { ...minute, ratePerSecond: 1_000_000, seconds: 86_400, processes: 1_000 };
    const said = simulate(much, (share) => shares.push(share));
    expect(said.seconds).toBe(2);
    expect(said.arrived).toBeGreaterThan(1_900_000);
    expect(shares.length).toBeGreaterThan(10);
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
  });
});
