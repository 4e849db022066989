import { describe, expect, test } from "vitest";
import { exponential } from "../../src/plan/simulate/random.js";
import { simulate, type SimulationInput } from "../../src/plan/simulate/simulate.js";

const MEAN_MS = 100;

/** A database that takes no time: what is left is a queue out of a textbook. */
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

/** A process that is not ideal, for a minute. */
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

/** The mean wait for one of so many servers (Erlang C). */
function waitMs(servers: number, load: number): number {
  let [term, sum] = [1, 0];
  for (let n = 0; n < servers; n++) {
    sum += term;
    term *= load / (n + 1);
  }
  const all = (term * servers) / (servers - load);
  return ((all / (sum + all)) * MEAN_MS) / (servers - load);
}

describe("where the result is known", () => {
  test.each([
    [1, 0.5],
    [1, 0.7],
    [2, 0.8],
    [5, 0.8],
    [9, 0.7],
  ])("%i permits that are used to %d let tasks wait as Erlang's formula says", (permits, used) => {
    const load = permits * used;
    const ratePerSecond = (load * 1000) / MEAN_MS;
    const said = simulate({ ...ideal, permits, ratePerSecond, seconds: 300_000 / ratePerSecond });
    expectNear(said.queueWaitMs.mean, waitMs(permits, load), 0.05);
    expectNear(said.permitUtilisation, used, 0.02);
    expectNear(said.inFlight.mean, load, 0.02);
  });

  test("tasks of one length wait half as long as spread ones", () => {
    const said = simulate({ ...ideal, durationMs: () => MEAN_MS });
    expectNear(said.queueWaitMs.mean, (MEAN_MS * 0.7) / (2 * 0.3), 0.04);
  });

  test("tasks that need the processor wait for one loop, however many permits there are", () => {
    const said = simulate({ ...ideal, ioShare: 0, permits: 200, batch: 200, cores: 4 });
    expectNear(said.queueWaitMs.mean, (MEAN_MS * 0.7) / 0.3, 0.05);
    expectNear(said.loopUtilisation, 0.7, 0.02);
    expectNear(said.coreUtilisation, 0.7 / 4, 0.02);
    expect(said.inFlight.max).toBe(1);
  });

  test("processes share the cores: four on two do as much as two", () => {
    const many = { ...ideal, ioShare: 0, permits: 2, ratePerSecond: 100, seconds: 500, cores: 2 };
    const [two, four] = [2, 4].map((processes) => simulate({ ...many, processes }));
    expectNear(two!.throughputPerSecond, 20, 0.03);
    expectNear(four!.throughputPerSecond, 20, 0.03);
    expectNear(four!.coreUtilisation, 1, 0.01);
    expectNear(four!.loopUtilisation, 0.5, 0.01);
  });

  test("a full worker does permits / (duration + round trip)", () => {
    const full = { ...minute, processes: 1, ioShare: 1, engineMs: 0, durationMs: () => 25 };
    const said = simulate({ ...full, meanMs: 25, permits: 9, claimMs: 5, ratePerSecond: 2_000 });
    expectNear(said.throughputPerSecond, 9_000 / 30, 0.03);
    expectNear(said.permitUtilisation, 1, 0.01);
  });

  test("claims of one task are bound by the lines", () => {
    const one = { ...minute, processes: 1, ioShare: 1, engineMs: 0, permits: 500, batch: 1 };
    const said = simulate({ ...one, claimMs: 10, ratePerSecond: 1_000, lines: 3 });
    expectNear(said.throughputPerSecond, 300, 0.03);
  });
});

describe("of every run", () => {
  test.each([
    ["stable", minute],
    ["flooded", { ...minute, ratePerSecond: 5_000 }],
    ["bound by the processor", { ...minute, ioShare: 0 }],
    ["of tasks that take no time", { ...minute, durationMs: () => 0, meanMs: 0, engineMs: 0 }],
    ["of one process with one permit", { ...minute, processes: 1, permits: 1 }],
    ["of even steps", { ...minute, steady: true }],
  ])("no task is lost or doubled in one that is %s", (_, input) => {
    const said = simulate(input);
    expect(said.arrived).toBe(said.done + said.waiting + said.held);
    expect(said.done).toBeGreaterThan(0);
    expect(said.held).toBeLessThanOrEqual(input.permits * input.processes);
    expect(said.inFlight.max).toBeLessThanOrEqual(input.permits * input.processes);
    expect(said.permitUtilisation).toBeLessThanOrEqual(1 + 1e-9);
    expect(said.coreUtilisation).toBeLessThanOrEqual(1.01);
  });

  test("the same seed gives the same run, another seed another", () => {
    expect(simulate(minute)).toEqual(simulate(minute));
    expect(simulate({ ...minute, seed: 2 }).arrived).not.toBe(simulate(minute).arrived);
  });

  test("tasks in even steps are not left to chance", () => {
    const said = simulate({ ...minute, steady: true });
    expect(Math.abs(said.arrived - 200 * 60)).toBeLessThanOrEqual(1);
  });

  test("a load above what can be carried is unstable, and its backlog grows by the difference", () => {
    const said = simulate({ ...minute, ioShare: 1, permits: 5, durationMs: () => 100 });
    expect(said.stable).toBe(false);
    expectNear(said.throughputPerSecond, 10_000 / 103.1, 0.03);
    expectNear(said.backlogGrowthPerSecond, 200 - 10_000 / 103.1, 0.05);
    expect(said.waiting).toBeGreaterThan(5_000);
  });

  test.each([1, 2, 3, 4, 5])("a load of nine tenths is stable, also by chance %i", (seed) => {
    const said = simulate({ ...ideal, permits: 9, ratePerSecond: 81, seconds: 60, seed });
    expect(said.stable).toBe(true);
  });

  test("time and memory are bounded: what is too much is simulated for a shorter time", () => {
    const shares: number[] = [];
    const much = { ...minute, ratePerSecond: 1_000_000, seconds: 86_400, processes: 1_000 };
    const said = simulate(much, (share) => shares.push(share));
    expect(said.seconds).toBe(2);
    expect(said.arrived).toBeGreaterThan(1_900_000);
    expect(shares.length).toBeGreaterThan(10);
    expect(shares).toEqual(shares.toSorted((a, b) => a - b));
  });
});
