import { describe, expect, test } from "vitest";
import {
  resolveApiConnections,
  resolveWorkerOptions,
  workerSettings,
} from "../../src/core/config.js";
import type { WorkerSetting } from "../../src/core/config.js";
import { caught } from "./caught.js";

const names = Object.keys(workerSettings) as WorkerSetting[];

describe("a worker's numbers", () => {
  test("have these defaults", () => {
    expect(resolveWorkerOptions({}, {}).values).toEqual({
      maxConcurrentTasks: 1000,
      claimBatchSize: 50,
      pollIntervalMs: 100,
      claimLoops: 1,
      dbConnections: 10,
      payloadBytesInFlightMax: 67_108_864,
      leaseMs: 15_000,
    });
  });

  test("the connections for enqueue and queries come from code, API_BUFFER or the default", () => {
    expect(resolveApiConnections(3, { API_BUFFER: "4" })).toBe(3);
    expect(resolveApiConnections(undefined, { API_BUFFER: "4" })).toBe(4);
    expect(resolveApiConnections(undefined, {})).toBe(7);
    expect(resolveApiConnections(undefined, { API_BUFFER: "" })).toBe(7);
    for (const wrong of ["0", "many", "1.5", " "])
      expect(caught(() => resolveApiConnections(undefined, { API_BUFFER: wrong }))).toMatchObject({
        code: "invalid_option",
      });
  });

  test.each([
    [{ leaseMs: 1000 }, { LEASE_MS: "2000" }, { leaseMs: 3000 }, 1000, "code"],
    [{ leaseMs: undefined }, { LEASE_MS: "2000" }, { leaseMs: 3000 }, 2000, "env"],
    [{}, { LEASE_MS: undefined }, { leaseMs: 3000 }, 3000, "file"],
    [{}, { LEASE_MS: "" }, { leaseMs: 3000 }, 3000, "file"],
    [{}, { LEASE_MS: "" }, {}, 15_000, "default"],
    [{}, {}, {}, 15_000, "default"],
  ])("come from code %j, environment %j, file %j", (code, env, file, value, source) => {
    const { values, sources } = resolveWorkerOptions(code, env, file);
    expect([values.leaseMs, sources.leaseMs]).toEqual([value, source]);
    expect(sources.claimLoops).toBe("default");
  });

  test.each(names)("%s has an environment variable that can set its whole range", (name) => {
    const { env, min, max } = workerSettings[name];
    for (const value of [min, max]) {
      expect(resolveWorkerOptions({}, { [env]: String(value) }).values[name]).toBe(value);
    }
    for (const value of [min - 1, max + 1]) {
      const error = caught(() => resolveWorkerOptions({}, { [env]: String(value) }));
      expect(error.code).toBe("invalid_option");
      expect(error.message).toContain(`${env} must be an integer from ${min} to ${max}`);
    }
  });

  test.each([" ", "abc", "1.5", "1e3", "0x10", "1_000", "5 ", "NaN", "Infinity", "9".repeat(40)])(
    "cannot be %j in the environment",
    (text) => {
      const error = caught(() => resolveWorkerOptions({}, { MAX_CONCURRENT_TASKS: text }));
      expect(error.code).toBe("invalid_option");
      expect(error.message).toContain("MAX_CONCURRENT_TASKS");
    },
  );

  test.each([0, -1, 1.5, NaN, Infinity, "5", null, 5n])("cannot be %s in code or file", (value) => {
    const bad = { maxConcurrentTasks: value } as never;
    expect(caught(() => resolveWorkerOptions(bad, {})).message).toMatch(/^maxConcurrentTasks must/);
    expect(caught(() => resolveWorkerOptions({}, {}, bad)).message).toContain("in the config file");
  });
});
