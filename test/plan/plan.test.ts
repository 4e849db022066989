import { describe, expect, test } from "vitest";
import { presetNames } from "../../src/config/presets.js";
import { constantDurations, exponentialDurations } from "../../src/plan/durations.js";
import { planDefaults, type PlanInput } from "../../src/plan/input.js";
import { eachOf, nearestPreset, planFor, secondsFor, simulationOf } from "../../src/plan/plan.js";
import { simulate, type Simulation } from "../../src/plan/simulate/simulate.js";

const { claimMs, utilisation, maxConnections } = planDefaults;
const web: PlanInput = {
  ratePerSecond: 200,
  steady: false,
  durations: constantDurations(80),
  ioShare: 0.9,
  cores: 4,
  batch: 50,
  batchSet: false,
  engineMs: 0.1,
  apiConnections: 7,
  given: {},
  preset: null,
  claimMs,
  utilisation,
  handlerConnections: null,
  maxConnections,
};

function tried(input: PlanInput): Simulation {
  const { setting } = planFor(input);
  return simulate(simulationOf(input, setting, { seconds: secondsFor(input), seed: 1 }));
}

describe("the arithmetic of a plan", () => {
  test("combines Little's law, CPU load and the sum of connections", () => {
    const { arithmetic, recommendation } = planFor(web);
    const value = Object.fromEntries(arithmetic.map((sum) => [sum.name, sum.value]));
    expect(value["in flight"]).toBeCloseTo(200 * 0.08);
    expect(value["CPU"]).toBeCloseTo(200 * (0.08 * 0.1 + 0.0001));
    expect(value["processes"]).toBe(Math.ceil(1.62 / 0.7));
    // Each of three event loops is 54 % busy: 8.1 ms of JavaScript wait 8.1 x 0.54 / (2 x 0.46) ms.
    expect(value["permit held"]).toBeCloseTo(80 + 0.1 + 2 * 3 + (8.1 * 0.54) / 0.92);
    expect(value["permits"]).toBeCloseTo((0.2 * value["permit held"]!) / 0.7);
    expect(value["claim capacity"]).toBeCloseTo((3 * 2 * 50) / 0.003);
    expect(recommendation).toEqual({ processes: 3, permits: 9, claimLoops: 1, connections: 17 });
    expect(value["connections"]).toBe(2 + 1 + 1 + 6 + 7);
    expect(value["transactions"]).toBeCloseTo((3 * 6) / 0.08);
    expect(value["on the server"]).toBe(51);
  });

  test("shows every number in its formulas", () => {
    const formulas = planFor(web).arithmetic.map(({ formula }) => formula);
    expect(formulas).toContain("200/s x 80 ms");
    expect(formulas).toContain("200/s x (80 ms x 10 % JavaScript + 0.1 ms engine)");
    expect(formulas).toContain("2 claim and settle + 1 heartbeat + 1 keeper + 6 handlers + 7 API buffer");
  });

  test("uses one claim loop per three permits for claims of one task, and more if claims are slow", () => {
    const one = { ...web, ioShare: 1, batch: 1 };
    expect(planFor(one).recommendation).toMatchObject({ permits: 25, claimLoops: 9 });
    // 200 claims a second of 40 ms keep 8 lines busy, and at 70 % 12.
    const slow = planFor({ ...one, claimMs: 40, durations: constantDurations(1) });
    expect(slow.recommendation).toMatchObject({ permits: 24, claimLoops: 12 });
    expect(planFor({ ...one, batch: 2 }).recommendation.claimLoops).toBe(1);
  });

  test("counts the given connections for handler transactions", () => {
    const { arithmetic, recommendation } = planFor({ ...web, handlerConnections: 2 });
    expect(recommendation.connections).toBe(13);
    expect(arithmetic.find(({ name }) => name === "transactions")).toMatchObject({
      formula: expect.stringContaining("3 x 2 handler connections / 80 ms") as string,
      value: 75,
    });
  });

  test("rounds 14.000000000000002 to 14", () => {
    const even = { ...web, ioShare: 1, claimMs: 0, engineMs: 0, utilisation: 0.5 };
    const setting = planFor({ ...even, ratePerSecond: 70, durations: constantDurations(100) });
    expect(setting.recommendation.permits).toBe(14);
  });
});

describe("the recommended setting", () => {
  test.each<[string, Partial<PlanInput>]>([
    ["I/O-bound tasks", { ioShare: 1 }],
    ["mixed tasks", {}],
    ["CPU-bound tasks", { ioShare: 0, ratePerSecond: 20, cores: 4 }],
    ["many short tasks", { ratePerSecond: 3_000, durations: constantDurations(5), ioShare: 0.99 }],
    ["few long tasks", { ratePerSecond: 0.05, durations: constantDurations(600_000), ioShare: 1 }],
    ["tasks of random length", { durations: exponentialDurations(80) }],
    ["claims of one task", { batch: 1, ratePerSecond: 500, ioShare: 1 }],
  ])("handles %s at about the requested utilisation", (_, change) => {
    const input = { ...web, ...change };
    expect(planFor(input).warnings).toEqual([]);
    const said = tried(input);
    expect(said.stable).toBe(true);
    expect(said.loopUtilisation).toBeLessThan(utilisation + 0.05);
    expect(said.permitUtilisation).toBeLessThan(0.85);
    expect(Math.max(said.loopUtilisation, said.permitUtilisation)).toBeGreaterThan(0.4);
  });
});

describe("permits beyond the maximum of one process", () => {
  const long = {
    ...web,
    ratePerSecond: 10,
    durations: constantDurations(3 * 3_600_000),
    ioShare: 1,
  };

  test("are spread over more processes than the CPU load needs", () => {
    const { recommendation, warnings, arithmetic, capacity } = planFor(long);
    expect(recommendation).toMatchObject({ processes: 2, permits: 77_143 });
    expect(warnings).toEqual([]);
    expect(capacity.perSecond).toBeGreaterThan(10);
    const formulas = Object.fromEntries(arithmetic.map(({ name, formula }) => [name, formula]));
    expect(formulas["processes"]).toContain("154,286 permits / 100,000 per process");
    expect(formulas["each process"]).toContain("154,286 / 2, rounded up, at least 2, at most 100,000");
  });

  test("are not recommended if the number of processes is given", () => {
    const { recommendation, warnings } = planFor({ ...long, given: { processes: 1 } });
    expect(recommendation.permits).toBe(100_000);
    expect(warnings.map(({ message }) => message)).toEqual([
      expect.stringContaining("a process has at most 100,000 permits, so 2 processes are needed"),
    ]);
  });

  test("are spread over a bounded number of processes", () => {
    const endless = { ...long, ratePerSecond: 1_000_000 };
    expect(planFor(endless).recommendation.processes).toBe(1000);
    expect(planFor(endless).warnings[0]?.message).toContain("so 154,286 processes are needed");
  });
});

describe("the plan of a given setting", () => {
  const codes = (input: PlanInput): string[] => planFor(input).warnings.map(({ code }) => code);

  test("warns if the setting cannot keep up, with its capacity, the shortfall and a remedy", () => {
    const input = { ...web, ioShare: 1, given: { permits: 9 } };
    const { warnings, setting, recommendation } = planFor(input);
    expect(setting).toEqual({ ...recommendation, permits: 9 });
    expect(warnings.map(({ message }) => message)).toEqual([
      "cannot keep up: 9 permits in total handle 108 of 200 tasks/s, 46 % too few, " +
        "so the backlog grows by 91.7 tasks/s; 25 permits per process are enough",
    ]);
    const said = tried(input);
    expect(said.stable).toBe(false);
    expect(said.throughputPerSecond / 108).toBeGreaterThan(0.97);
    expect(said.throughputPerSecond / 108).toBeLessThan(1.03);
  });

  test("has the same capacity in the simulation as in the arithmetic, whatever the bottleneck", () => {
    const flood = { ...web, ratePerSecond: 20_000 };
    for (const [bottleneck, input] of [
      ["permits", { ...flood, ioShare: 1, given: { permits: 50, processes: 2 } }],
      ["cpu", { ...flood, ioShare: 0.5, given: { permits: 50, processes: 3 } }],
      ["claims", { ...flood, ioShare: 1, batch: 1, given: { permits: 500, processes: 1, claimLoops: 3 } }],
    ] as const) {
      const { capacity, setting, warnings } = planFor(input);
      expect(capacity.bottleneck).toBe(bottleneck);
      expect(warnings[0]?.code).toBe("too_slow");
      const said = simulate(simulationOf(input, setting, { seconds: 20, seed: 1 }));
      expect(Math.abs(said.throughputPerSecond / capacity.perSecond - 1)).toBeLessThan(0.1);
    }
  });

  test("counts claim lines instead of loops, so one loop and two are equal", () => {
    const flood = { ...web, ratePerSecond: 20_000, ioShare: 1, batch: 1 };
    const told = (claimLoops: number): string | undefined =>
      planFor({ ...flood, given: { permits: 500, processes: 2, claimLoops } }).warnings[0]?.message;
    expect(told(1)).toContain("4 concurrent claims in total handle");
    expect(told(1)).toContain("set more than 2 claim loops");
    expect(told(2)).toBe(told(1));
    expect(told(3)).toContain("6 concurrent claims in total handle");
  });

  test("checks the connections of each process and of the server", () => {
    expect(codes({ ...web, given: { connections: 11 } })).toEqual(["connections"]);
    expect(codes({ ...web, maxConnections: 54 })).toEqual([]);
    expect(codes({ ...web, maxConnections: 53 })).toEqual(["server_connections"]);
    expect(planFor({ ...web, given: { claimLoops: 6 } }).setting.connections).toBe(21);
  });

  test("warns if handler transactions wait for each other", () => {
    const few = { ...web, given: { connections: 12 } };
    expect(planFor(few).warnings).toEqual([
      {
        code: "transactions",
        message:
          "handler transactions (ctx.transaction) share 1 connection per process: at most 37.5 of " +
          "200 tasks/s if every task is in one all the time; 17 connections per process would leave 6 for them",
      },
    ]);
    // There is no warning if the number is given explicitly or suffices.
    expect(codes({ ...few, handlerConnections: 1 })).toEqual([]);
    expect(codes({ ...few, ratePerSecond: 10 })).toEqual([]);
  });

  test("warns if there are too few cores", () => {
    expect(codes({ ...web, cores: 2 })).toEqual(["cores"]);
    expect(codes({ ...web, cores: 1 })).toEqual(["too_slow"]);
    expect(planFor({ ...web, cores: 1 }).warnings[0]?.message).toContain("3 processes on as many");
  });

  test("warns if the setting is barely sufficient", () => {
    expect(codes({ ...web, ioShare: 1, given: { permits: 18 } })).toEqual(["tight"]);
  });

  test("accepts a preset with single numbers replaced", () => {
    const { setting } = planFor({ ...web, preset: "io", given: { claimLoops: 2, processes: 5 } });
    expect(setting).toEqual({ processes: 5, permits: 20, claimLoops: 2, connections: 35 });
  });
});

test.each(presetNames)("the preset %s is nearest to itself", (name) => {
  const cores = 2;
  expect(nearestPreset({ processes: 1, ...eachOf(name, cores) }, cores)).toMatchObject({
    name,
    differences: [],
  });
});

test("a plan names the nearest preset and its differences", () => {
  const setting = { processes: 1, permits: 25, claimLoops: 1, connections: 12 };
  expect(nearestPreset(setting, 4)).toMatchObject({
    name: "io",
    purpose: "20 tasks at once, whatever the backlog: slow calls to other services, not many short tasks",
    differences: ["permits 20 instead of 25", "claim loops 5 instead of 1", "connections 35 instead of 12"],
  });
});
