import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, test } from "vitest";
import { namesOf, sections, settingOf, snakeCase, type Section } from "../../src/config/table.js";
import { sluice as run } from "./run.js";

const folder = mkdtempSync(join(tmpdir(), "sluice-cli-"));
afterAll(() => rmSync(folder, { recursive: true }));
const file = join(folder, "sluice.toml");
writeFileSync(
  file,
  `preset = "io"
   [client]
   url = "postgres://ada:secret@db.example/shop"
   [worker]
   lease_ms = 30000
   [metrics]
   token = "0123456789abcdef-secret"`,
);

interface Shown {
  readonly file: string | null;
  readonly preset: { readonly value: string; readonly source: string };
  readonly settings: readonly {
    readonly section: string;
    readonly key: string;
    readonly env: string;
    readonly value: unknown;
    readonly source: string;
  }[];
  readonly connections: { readonly total: number; readonly ok: boolean };
}

async function shown(args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Shown> {
  const { code, out, err } = await run(["config", "--json", ...args], env);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out) as Shown;
}

const find = ({ settings }: Shown, section: string, key: string) =>
  settings.find((one) => one.section === section && one.key === key);

describe("sluice config", () => {
  test("prints every setting with its value, its source, its variable and its key", async () => {
    const all = await shown([]);
    expect(all.file).toBeNull();
    expect(all.settings.map(({ section, key, env }) => [section, key, env])).toEqual(
      sections.flatMap((section) =>
        namesOf<Section>(section).map((name) => [section, snakeCase(name), settingOf<Section>(section, name).env]),
      ),
    );
    expect(new Set(all.settings.map(({ source }) => source))).toEqual(new Set(["default"]));
    expect(all.connections).toMatchObject({ total: 17, ok: true });
  });

  test("shows the source of each setting: environment, file, preset or default", async () => {
    const env = { MAX_CONCURRENT_TASKS: "200", SLUICE_CONFIG: file };
    const all = await shown([], env);
    expect(all.file).toBe(file);
    expect(all.preset).toEqual({ value: "io", source: `file ${file}: preset` });
    expect(find(all, "worker", "max_concurrent_tasks")).toMatchObject({
      value: 200,
      source: "env MAX_CONCURRENT_TASKS",
    });
    expect(find(all, "worker", "lease_ms")).toMatchObject({
      value: 30_000,
      source: `file ${file}: worker.lease_ms`,
    });
    expect(find(all, "worker", "claim_loops")).toMatchObject({ value: 5, source: "preset io" });
    expect(find(all, "worker", "claim_batch_size")).toMatchObject({ source: "default" });
    const other = await shown(["--preset", "dev", "--config", file]);
    expect(other.preset).toEqual({ value: "dev", source: "--preset" });
    expect(find(other, "worker", "claim_loops")).toMatchObject({ value: 2, source: "preset dev" });
  });

  test("prints readable lines by section, with the sum of the connections", async () => {
    const { code, out, err } = await run(["config", "--config", file], { LEASE_MS: "20000" });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toContain(`config file: ${file}\npreset: io (file ${file}: preset)\n`);
    expect(out).toMatch(/\[client\][^]*\[worker\][^]*\[pressure\][^]*\[metrics\][^]*\[history\]/);
    expect(out).toMatch(/ {2}lease_ms +20000 {2}env LEASE_MS +LEASE_MS\n/);
    expect(out).toContain("connections: 35 for 5 to claim and settle + 1 for heartbeats + 1 for the keeper");
  });

  test("prints no password and no token", async () => {
    const env = { SLUICE_LISTEN_URL: "postgres://ada:secret@direct.example/shop?password=secret" };
    const [lines, json] = await Promise.all([
      run(["config", "--config", file], env),
      run(["config", "--config", file, "--json"], env),
    ]);
    for (const { out } of [lines, json]) {
      expect(out).not.toContain("secret");
      expect(out).toContain("postgres://ada:***@db.example/shop");
      expect(out).toContain("postgres://ada:***@direct.example/shop?password=***");
    }
  });

  test("exits with an error if the connections do not add up, and prints them", async () => {
    const { code, out, err } = await run(["config"], { NUM_WORKERS: "40" });
    expect(code).toBe(2);
    expect(out).toMatch(/claim_loops +40 /);
    expect(err).toContain("error invalid_option: dbConnections (MAX_DB_CONNECTIONS) is 17, but 50");
  });

  test("exits with an error if a worker would refuse to serve the metrics, and prints the settings", async () => {
    const env = { SLUICE_METRICS_PORT: "9464", SLUICE_METRICS_HOST: "0.0.0.0" };
    const [open, closed] = await Promise.all([
      run(["config"], env),
      run(["config"], { ...env, SLUICE_METRICS_TOKEN: "0123456789abcdef" }),
    ]);
    expect(open.code).toBe(2);
    expect(open.out).toMatch(/host +0\.0\.0\.0 /);
    expect(open.err).toContain("error invalid_option: metrics.token is required to listen on 0.0.0.0");
    expect(closed).toMatchObject({ code: 0, err: "" });
  });

  test.each<[string[], NodeJS.ProcessEnv, string]>([
    [["--preset", "fast"], {}, 'preset must be "default" or "dev"'],
    [["--config", join(folder, "none.toml")], {}, "none.toml cannot be read: it does not exist"],
    [[], { LEASE_MS: "soon" }, "LEASE_MS must be an integer from 500 to 3600000"],
  ])("refuses %j %j and exits with 2", async (args, env, words) => {
    const { code, out, err } = await run(["config", ...args], env);
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain("error invalid_option: ");
    expect(err).toContain(words);
  });

  test("prints its help with examples", async () => {
    const { code, out } = await run(["config", "--help"]);
    expect(code).toBe(0);
    for (const word of ["--config", "--preset", "--json", "SLUICE_CONFIG", "Examples:"]) expect(out).toContain(word);
  });
});
