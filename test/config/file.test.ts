import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { readConfigFile } from "../../src/config/file.js";
import { SluiceError } from "../../src/core/error.js";

function folder(): string {
  const path = mkdtempSync(join(tmpdir(), "sluice-config-"));
  onTestFinished(() => rmSync(path, { recursive: true }));
  return path;
}

function fileWith(text: string): string {
  const path = join(folder(), "sluice.toml");
  writeFileSync(path, text);
  return path;
}

async function refusal(text: string): Promise<{ path: string; error: SluiceError }> {
  const path = fileWith(text);
  const error = await readConfigFile(path, {}).then(
    () => new Error("it was accepted"),
    (e: unknown) => e,
  );
  if (!(error instanceof SluiceError)) throw error;
  return { path, error };
}

test("the config file is read section by section", async () => {
  const path = fileWith(`
    preset = "io" # the worker waits for others
    [client]
    schema = "jobs"
    migrate = false
    [worker]
    lease_ms = 30_000
    [pressure]
    event_loop_delay_ms_max = false
    [history]
    succeeded_ms = 0
  `);
  const file = await readConfigFile(path, {});
  expect(file?.path).toBe(path);
  expect(Object.fromEntries(file!.values)).toEqual({
    preset: "io",
    "client.schema": "jobs",
    "client.migrate": false,
    "worker.lease_ms": 30_000,
    "pressure.event_loop_delay_ms_max": false,
    "history.succeeded_ms": 0,
  });
});

describe("the config file", () => {
  test("is the one named in code, then the one named by SLUICE_CONFIG", async () => {
    const [one, two] = [fileWith('preset = "io"'), fileWith('preset = "dev"')];
    const env = { SLUICE_CONFIG: two };
    expect((await readConfigFile(one, env))?.values.get("preset")).toBe("io");
    expect((await readConfigFile(undefined, env))?.values.get("preset")).toBe("dev");
    expect(await readConfigFile(false, env)).toBeNull();
  });

  test("is optional if the working directory has no sluice.toml", async () => {
    expect(await readConfigFile(undefined, {})).toBeNull();
    expect(await readConfigFile(undefined, { SLUICE_CONFIG: "" })).toBeNull();
  });

  test("must exist if code or SLUICE_CONFIG names it", async () => {
    const path = join(folder(), "elsewhere.toml");
    const missing = { code: "invalid_option", details: { file: path } };
    await expect(readConfigFile(path, {})).rejects.toMatchObject(missing);
    await expect(readConfigFile(undefined, { SLUICE_CONFIG: path })).rejects.toMatchObject(missing);
    await expect(readConfigFile(folder(), {})).rejects.toMatchObject({ code: "invalid_option" });
  });

  test.each([5, "", {}, true])("cannot be given as %j", async (value) => {
    await expect(readConfigFile(value as never, {})).rejects.toMatchObject({
      code: "invalid_option",
      details: { option: "config" },
    });
  });
});

describe("an error in the config file", () => {
  test.each([
    ["[worker]\nlaese_ms = 5", "worker.laese_ms", "did you mean lease_ms?"],
    ["[worker]\nleaseMs = 5", "worker.leaseMs", "did you mean lease_ms?"],
    ["[worker]\nzebra = 5", "worker.zebra", "the known keys are max_concurrent_tasks"],
    ["[wroker]\nlease_ms = 500", "wroker", "did you mean worker?"],
    ["[zebra]", "zebra", "the known ones are [client], [worker]"],
    ["lease_ms = 500", "lease_ms", "has an unknown top-level key"],
    ["worker = 5", "worker", "must be a section: write [worker]"],
    ["[[worker]]\nlease_ms = 500", "worker", "must be a section: write [worker]"],
    ["[worker]\nlease_ms = 5", "worker.lease_ms", "must be an integer from 500 to 3600000, not 5"],
    ['[worker]\nlease_ms = "500"', "worker.lease_ms", "must be an integer"],
    ["[worker]\nlease_ms = 500.5", "worker.lease_ms", "must be an integer"],
    ["[worker]\nlease_ms = 2026-01-01", "worker.lease_ms", "must be an integer"],
    ["[client]\nmigrate = 1", "client.migrate", "must be true or false, not 1"],
    ['[client]\nschema = "a; drop"', "client.schema", "is not allowed"],
    ['[client]\nurl = "localhost"', "client.url", "must be a string that begins with postgres://"],
    ['[client]\nurl = ""', "client.url", "is empty: set a value, or remove the key"],
    ['[metrics]\nhost = ""', "metrics.host", "is empty"],
    ["[history]\nfailed_ms = -1", "history.failed_ms", "must be an integer from 0"],
    ["[pressure]\nmemory_percent_max = true", "pressure.memory_percent_max", ", or false, not true"],
    ['preset = "fast"', "preset", 'must be "default" or "dev"'],
    ["[worker.lease_ms]", "worker.lease_ms", "must be an integer"],
    ["[worker.__proto__]\na = 1", "worker.__proto__", "has no key"],
    ["[constructor]", "constructor", "has an unknown top-level key"],
  ])("names the file and the key: %j", async (text, option, words) => {
    const { path, error } = await refusal(text);
    expect(error).toMatchObject({ code: "invalid_option", details: { option, file: path } });
    expect(error.message).toContain(path);
    expect(error.message).toContain(option.split(".").at(-1));
    expect(error.message).toContain(words);
  });

  test.each([
    ["[worker]\nlease_ms = = 5", 2],
    ["[worker]\nlease_ms = 5000\nlease_ms = 6000", 3],
    ["[worker]\n\n\nlease_ms = 99999999999999999999", 4],
  ])("names the line if the text is not TOML: %j", async (text, line) => {
    const { path, error } = await refusal(text);
    expect(error).toMatchObject({ code: "invalid_option", details: { file: path, line } });
    expect(error.message).toContain(`${path}, line ${line},`);
  });

  test("never shows the text beside the fault, which may be a password", async () => {
    const { error } = await refusal('[client]\nurl = "postgres://ada:secret@db/shop" x');
    expect(error.message).not.toContain("secret");
    expect(JSON.stringify(error.details)).not.toContain("secret");
    expect(error.cause).toBeUndefined();
  });
});
