import { describe, expect, test } from "vitest";
import { connectionsOf, fitOf } from "../../src/config/connections.js";
import { presetNames, presetOf } from "../../src/config/presets.js";
import { resolveSection } from "../../src/config/resolve.js";

const nothing = { env: {}, file: null };

describe("the split of a worker's connections", () => {
  test.each([
    // loops, total, api, explicit | claims, handlers, needed
    [1, 17, 7, undefined, 2, 6, 17],
    [1, 12, 7, undefined, 2, 1, 12],
    [2, 12, 7, undefined, 2, 1, 12],
    [3, 15, 7, undefined, 3, 3, 15],
    [5, 25, 7, undefined, 5, 11, 25],
    [2, 15, 7, undefined, 2, 4, 15],
    [5, 35, 7, undefined, 5, 21, 35],
    [1, 17, 1, undefined, 2, 12, 17],
    [1, 17, 7, 3, 2, 3, 14],
    [1, 17, 7, 6, 2, 6, 17],
    [64, 10_000, 1000, undefined, 64, 8934, 10_000],
  ])("adds up for %i claim loops, %i in total, %i for the API, %s for handlers", (...row) => {
    const [claimLoops, dbConnections, apiConnections, handlerConnections, claims, handlers, sum] = row;
    expect(connectionsOf({ claimLoops, dbConnections, apiConnections, handlerConnections })).toEqual({
      claims,
      beat: 1,
      keep: 1,
      handlers,
      api: apiConnections,
      total: dbConnections,
      needed: sum,
      ok: true,
      problem: null,
    });
  });

  test.each([
    [1, 11, 7, undefined, 12, ["2 to claim", "1 for heartbeats", "1 for the keeper", "1 for handler tra", "7 for enq"]],
    [8, 17, 7, undefined, 18, ["8 to claim", "1 for heartbeats", "1 for the keeper", "1 for handler tra", "7 for enq"]],
    [
      1,
      17,
      20,
      undefined,
      25,
      ["2 to claim", "1 for heartbeats", "1 for the keeper", "1 for handler tra", "20 for enq"],
    ],
    [1, 17, 7, 7, 18, ["2 to claim", "1 for heartbeats", "1 for the keeper", "7 for handler tra", "7 for enq"]],
  ])("reports too few for %i claim loops, %i in total, %i for the API, %s for handlers", (...row) => {
    const [claimLoops, dbConnections, apiConnections, handlerConnections, needed, summands] = row;
    const shares = connectionsOf({ claimLoops, dbConnections, apiConnections, handlerConnections });
    expect(shares).toMatchObject({ ok: false, needed, total: dbConnections });
    expect(shares.problem).toContain(`is ${dbConnections}, but ${needed} are needed`);
    for (const summand of summands) expect(shares.problem).toContain(summand);
  });

  test.each(presetNames)("adds up for the preset %s", (preset) => {
    const numbers = resolveSection("worker", {}, nothing, preset).values;
    expect(connectionsOf({ ...numbers, apiConnections: 7 })).toMatchObject({
      ok: true,
      needed: numbers.dbConnections,
    });
  });
});

test.each([
  ["dev", 8, [2, 3, 12]],
  ["balanced", 8, [3, 5, 15]],
  ["high", 8, [5, 10, 25]],
  ["cpu", 1, [2, 1, 15]],
  ["cpu", 4, [2, 4, 15]],
  ["cpu", 64, [2, 4, 15]],
  ["io", 8, [5, 20, 35]],
  ["throughput", 8, [1, 2_000, 17]],
] as const)("the preset %s on %i cores sets claim loops, permits and connections", (name, cores, expected) => {
  const { claimLoops, maxConcurrentTasks, dbConnections } = presetOf(name, cores);
  expect([claimLoops, maxConcurrentTasks, dbConnections]).toEqual(expected);
});

test("only the preset throughput sets the claim size", () => {
  const sizes = presetNames.map((name) => [name, presetOf(name).claimBatchSize]);
  expect(sizes.filter(([, size]) => size !== undefined)).toEqual([["throughput", 500]]);
});

describe("the check of free server connections", () => {
  const server = { max: 100, reserved: 3, inUse: 0, workers: 0, registered: 0 };
  test.each([
    ["passes for a worker alone", { may: 17, open: 3 }, { inUse: 3 }, "fits"],
    ["passes for a worker that uses the last connection", { may: 97, open: 3 }, { inUse: 3 }, "fits"],
    ["refuses one connection more than the server has", { may: 98, open: 3 }, { inUse: 3 }, "impossible"],
    ["passes beside open connections of other clients", { may: 17, open: 3 }, { inUse: 83 }, "fits"],
    ["warns of one connection too many beside open connections", { may: 17, open: 3 }, { inUse: 84 }, "tight"],
    ["passes beside other registered workers", { may: 17, open: 3 }, { workers: 2, registered: 80 }, "fits"],
    [
      "warns of one connection too many beside other workers",
      { may: 17, open: 3 },
      { workers: 2, registered: 81 },
      "tight",
    ],
    [
      "counts connections once that are both open and registered",
      { may: 17, open: 3 },
      { inUse: 60, workers: 2, registered: 60 },
      "fits",
    ],
  ] as const)("%s", (_, mine, more, expected) => {
    const { impossible, tight } = fitOf(mine, { ...server, ...more });
    const found = impossible !== null ? "impossible" : tight !== null ? "tight" : "fits";
    expect(found).toBe(expected);
    if (found !== "fits") expect(impossible ?? tight).toContain("97 (max_connections 100 - 3 reserved)");
  });

  const words = (more: Partial<typeof server>): string | null =>
    fitOf({ may: 17, open: 3 }, { ...server, ...more }).tight;
  const but = "but the server allows 97 (max_connections 100 - 3 reserved). ";

  test("warns with the sum of connections and with ways to reduce it", () => {
    const mine = "this worker may open 17 connections and";
    expect(words({ inUse: 13, workers: 5, registered: 85 })).toContain(
      `${mine} 5 other workers may open 85: 17 + 85 = 102, ${but}`,
    );
    expect(words({ workers: 1, registered: 85 })).toContain(`${mine} 1 other worker may open 85:`);
    expect(words({ inUse: 90 })).toBe(
      `${mine} other clients have 87 open now: 17 + 87 = 104, ${but}` +
        "Lower dbConnections (MAX_DB_CONNECTIONS), run fewer processes, raise max_connections, or use a pooler",
    );
  });

  test("refuses with the number of connections and with ways to reduce it", () => {
    const { impossible } = fitOf({ may: 98, open: 3 }, server);
    expect(impossible).toContain(`may open 98 connections, ${but}Lower dbConnections`);
  });
});
