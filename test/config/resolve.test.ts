import { describe, expect, test } from "vitest";
import { maskUrl } from "../../src/config/url.js";
import type { ConfigFile } from "../../src/config/file.js";
import { resolvePreset, resolveSection, resolveWithin } from "../../src/config/resolve.js";
import { namesOf, sections, settingOf, snakeCase, type Section } from "../../src/config/table.js";
import { caught } from "../core/caught.js";

const nothing = { env: {}, file: null };
const fileOf = (values: Record<string, unknown>): ConfigFile => ({
  path: "/etc/sluice.toml",
  values: new Map(Object.entries(values)),
});
const all = sections.flatMap((section) =>
  namesOf<Section>(section).map((name) => ({
    section,
    name,
    ...settingOf<Section>(section, name),
  })),
);

describe("without configuration", () => {
  test("a worker uses its default settings", () => {
    expect(resolveSection("worker", {}, nothing).values).toEqual({
      maxConcurrentTasks: 1000,
      pollIntervalMs: 100,
      claimLoops: 1,
      dbConnections: 17,
      handlerConnections: undefined,
      payloadBytesInFlightMax: 67_108_864,
      leaseMs: 15_000,
    });
  });

  test("a client and its history use their default settings", () => {
    expect(resolveSection("client", {}, nothing).values).toMatchObject({
      url: undefined,
      schema: "sluice",
      apiConnections: 7,
      migrate: true,
      listen: true,
      prepare: true,
    });
    expect(resolveWithin("history", undefined, nothing)).toEqual({
      succeededMs: 86_400_000,
      failedMs: 604_800_000,
      cancelledMs: 604_800_000,
    });
  });
});

describe("precedence is code, environment, file, preset, default", () => {
  const env = { MAX_CONCURRENT_TASKS: "20" };
  const file = fileOf({ "worker.max_concurrent_tasks": 30 });
  test.each([
    [{ maxConcurrentTasks: 10 }, env, file, "dev", 10, { layer: "code" }],
    [{}, env, file, "dev", 20, { layer: "env", name: "MAX_CONCURRENT_TASKS" }],
    [{ maxConcurrentTasks: undefined }, env, file, "dev", 20, { layer: "env" }],
    [{}, { MAX_CONCURRENT_TASKS: "" }, file, "dev", 30, { layer: "file", path: file.path }],
    [{}, {}, fileOf({}), "dev", 3, { layer: "preset", name: "dev" }],
    [{}, {}, null, "dev", 3, { layer: "preset", name: "dev" }],
    [{}, {}, null, "default", 1000, { layer: "default" }],
  ] as const)(
    "for a worker setting with %j in code and %j in the environment",
    (code, inEnv, inFile, preset, value, source) => {
      const { values, sources } = resolveSection("worker", code, { env: inEnv, file: inFile }, preset);
      expect(values.maxConcurrentTasks).toBe(value);
      expect(sources.maxConcurrentTasks).toMatchObject(source);
      expect(sources.leaseMs).toEqual({ layer: "default" });
    },
  );

  test("for the name of the preset", () => {
    const layers = { env: { SLUICE_PRESET: "io" }, file: fileOf({ preset: "high" }) };
    expect(resolvePreset("dev", layers)).toEqual({ value: "dev", source: { layer: "code" } });
    expect(resolvePreset(undefined, layers).value).toBe("io");
    expect(resolvePreset(undefined, { ...layers, env: {} }).value).toBe("high");
    expect(resolvePreset(undefined, nothing).value).toBe("default");
    expect(caught(() => resolvePreset("fast", nothing)).code).toBe("invalid_option");
    const wrong = { env: { SLUICE_PRESET: "fast" }, file: null };
    expect(caught(() => resolvePreset(undefined, wrong)).message).toMatch(/^SLUICE_PRESET must/);
  });

  test("for the settings of a client and its history", () => {
    const file = fileOf({ "client.schema": "infile", "history.failed_ms": 3 });
    const env = { SLUICE_SCHEMA: "inenv", SLUICE_HISTORY_FAILED_MS: "2" };
    const schema = (code: object, layers: object): string =>
      resolveSection("client", code, { ...nothing, ...layers }).values.schema;
    expect(schema({ schema: "incode" }, { env, file })).toBe("incode");
    expect(schema({}, { env, file })).toBe("inenv");
    expect(schema({}, { file })).toBe("infile");
    const failedMs = (code: object | undefined, layers: object): number =>
      resolveWithin("history", code, { ...nothing, ...layers }).failedMs;
    expect(failedMs({ failedMs: 1 }, { env, file })).toBe(1);
    expect(failedMs(undefined, { env, file })).toBe(2);
    expect(failedMs({}, { file })).toBe(3);
  });
});

describe("every setting", () => {
  test("has a variable that starts with SLUICE_, except for a fixed list of common names", () => {
    const others = all.map(({ env }) => env).filter((env) => !env.startsWith("SLUICE_"));
    expect(others).toEqual([
      "DATABASE_URL",
      "API_BUFFER",
      "MAX_CONCURRENT_TASKS",
      "CLAIM_BATCH_SIZE",
      "POLL_INTERVAL_MS",
      "NUM_WORKERS",
      "MAX_DB_CONNECTIONS",
      "HANDLER_DB_CONNECTIONS",
      "MAX_PAYLOAD_BYTES_IN_FLIGHT",
      "LEASE_MS",
    ]);
  });

  test("has a unique variable and a snake_case key", () => {
    const variables = all.map(({ env }) => env);
    expect(new Set(variables).size).toBe(variables.length);
    for (const { name, help } of all) {
      expect(snakeCase(name)).toMatch(/^[a-z][a-z0-9]*(_[a-z0-9]+)*$/);
      expect(help).not.toBe("");
    }
  });

  const numbers = all.filter((setting) => setting.kind === "integer");
  test.each(numbers)("$section.$name accepts its whole range from its variable", (setting) => {
    const { section, name, env, min, max } = setting;
    const resolve = (text: string): unknown =>
      resolveSection<Section>(section, {}, { env: { [env]: text }, file: null }).values[name];
    for (const value of [min, max]) expect(resolve(String(value))).toBe(value);
    for (const value of [min - 1, max + 1]) {
      const error = caught(() => resolve(String(value)));
      expect(error.code).toBe("invalid_option");
      expect(error.message).toContain(`${env} must be an integer from ${min} to ${max}`);
    }
    if (setting.off) expect(resolve("false")).toBe(false);
    else expect(caught(() => resolve("false")).code).toBe("invalid_option");
  });

  test.each(all.filter(({ kind }) => kind === "boolean"))(
    "$section.$name accepts only true, false, 1 and 0 from its variable",
    ({ section, name, env }) => {
      const resolve = (text: string): unknown =>
        resolveSection<Section>(section, {}, { env: { [env]: text }, file: null }).values[name];
      expect(["true", "1", "false", "0"].map(resolve)).toEqual([true, true, false, false]);
      for (const text of ["yes", "TRUE", " ", "constructor"])
        expect(caught(() => resolve(text)).message).toContain(`${env} must be true or false`);
    },
  );
});

describe("invalid values", () => {
  test.each([" ", "abc", "1.5", "1e3", "0x10", "1_000", "5 ", "NaN", "Infinity", "9".repeat(40)])(
    "a number setting refuses %j from the environment",
    (text) => {
      const layers = { env: { MAX_CONCURRENT_TASKS: text }, file: null };
      const error = caught(() => resolveSection("worker", {}, layers));
      expect(error).toMatchObject({
        code: "invalid_option",
        details: { option: "MAX_CONCURRENT_TASKS" },
      });
      expect(error.message).toContain("MAX_CONCURRENT_TASKS");
    },
  );

  test.each([0, -1, 1.5, NaN, Infinity, "5", null, 5n, false])("a number setting refuses %s in code", (value) => {
    const bad = { maxConcurrentTasks: value } as never;
    const error = caught(() => resolveSection("worker", bad, nothing));
    expect(error.message).toMatch(/^maxConcurrentTasks must be an integer from 1 to 100000/);
  });

  test("a wrong schema name or database address from the environment is refused without showing a password", () => {
    const env = { DATABASE_URL: "localhost:secret" };
    const error = caught(() => resolveSection("client", {}, { env, file: null }));
    expect(error.message).toMatch(/^DATABASE_URL must be a string that begins with postgres:/);
    expect(error.message).not.toContain("secret");
    const schema = { env: { SLUICE_SCHEMA: "a; drop" }, file: null };
    expect(caught(() => resolveSection("client", {}, schema))).toMatchObject({
      code: "invalid_option",
      details: { option: "SLUICE_SCHEMA" },
    });
  });
});

test.each([
  ["postgres://ada:secret@db.example/shop", "postgres://ada:***@db.example/shop"],
  ["postgres://ada:se/cr@et@db.example/shop", "postgres://ada:***@db.example/shop"],
  ["postgres://:secret@db.example/shop", "postgres://:***@db.example/shop"],
  ["postgresql://ada@db.example:5432/shop", "postgresql://ada@db.example:5432/shop"],
  [
    "postgres://db.example/shop?user=ada&password=secret&sslmode=require",
    "postgres://db.example/shop?user=ada&password=***&sslmode=require",
  ],
])("the database address %s is shown as %s", (url, shown) => {
  expect(maskUrl(url)).toBe(shown);
});
