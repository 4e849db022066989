import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Client, Sluice, task, type ConnectOptions } from "../../src/index.js";
import { freshDatabase } from "../support/database.js";

const handlers = [task("job").handle(() => 1)];

/** A new database, and a config file with this text. */
async function house(text: string): Promise<{ url: string; config: string }> {
  const folder = mkdtempSync(join(tmpdir(), "sluice-door-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const config = join(folder, "sluice.toml");
  writeFileSync(config, text);
  const database = await freshDatabase();
  onTestFinished(() => database.drop());
  return { url: database.url, config };
}

async function connect(options: ConnectOptions): Promise<Sluice> {
  const sluice = await Sluice.connect(options);
  onTestFinished(() => sluice.close());
  return sluice;
}

function setEnv(name: string, value: string): void {
  vi.stubEnv(name, value);
  onTestFinished(() => void vi.unstubAllEnvs());
}

describe("settings reach the client and the worker", () => {
  test("a worker takes code before environment before file before preset", async () => {
    const h = await house('preset = "io"\n[worker]\nmax_concurrent_tasks = 30');
    const sluice = await connect(h);
    const permits = (options = {}): number => sluice.worker({ handlers, ...options }).status().permitsMax;
    expect(permits()).toBe(30);
    setEnv("MAX_CONCURRENT_TASKS", "40");
    expect(permits()).toBe(40);
    expect(permits({ maxConcurrentTasks: 50 })).toBe(50);
    const other = await connect({ url: h.url, config: false });
    vi.unstubAllEnvs();
    setEnv("SLUICE_PRESET", "high");
    expect(other.worker({ handlers }).status().permitsMax).toBe(10);
    expect(other.worker({ handlers, preset: "dev" }).status().permitsMax).toBe(3);
  });

  test("a client takes database and schema from the file that SLUICE_CONFIG names", async () => {
    const { url, config } = await house("");
    writeFileSync(config, `[client]\nurl = "${url}"\nschema = "jobs"\nlisten = false`);
    setEnv("SLUICE_CONFIG", config);
    setEnv("DATABASE_URL", "");
    const client = await Client.connect();
    onTestFinished(() => client.close());
    const { id } = await client.enqueue(task("job"));
    expect((await client.task(id).status())?.state).toBe("ready");
    const sluice = await connect({ schema: "elsewhere" });
    expect(await sluice.task(id).status()).toBeNull();
  });

  test("a worker takes pressure and metrics settings from file and environment", async () => {
    const h = await house("[metrics]\nport = 0\n[pressure]\nmemory_percent_max = false");
    const worker = (await connect(h)).worker({ handlers });
    await worker.start();
    expect(worker.metricsUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+/);
    setEnv("SLUICE_METRICS_HOST", "0.0.0.0");
    const sluice = await connect(h);
    expect(() => sluice.worker({ handlers })).toThrow("metrics.token is required");
    setEnv("SLUICE_METRICS_PORT", "five");
    expect(() => sluice.worker({ handlers })).toThrow("SLUICE_METRICS_PORT must be an integer");
    expect(() => sluice.worker({ handlers, metrics: { prot: 5 } as never })).toThrow(
      'metrics has no option "prot"; the known options are enabled, port, host, token, registry; did you mean port?',
    );
    expect(() => sluice.worker({ handlers, payloadbytesinflightmax: 5 } as never)).toThrow(
      "did you mean payloadBytesInFlightMax?",
    );
  });
});

describe("a wrong setting is refused before a connection opens", () => {
  test.each([
    ["[worker]\nleese_ms = 5", "worker.leese_ms"],
    ["[worker]\nlease_ms = 5", "worker.lease_ms"],
    ["[history]\nfailed_ms = true", "history.failed_ms"],
  ])("config file %j is refused, even for a client without a worker", async (text, option) => {
    const { config } = await house(text);
    await expect(Client.connect({ url: "postgres://nobody.invalid", config })).rejects.toMatchObject({
      code: "invalid_option",
      details: { option, file: config },
    });
  });

  test.each([
    ["API_BUFFER", "0"],
    ["SLUICE_MIGRATE", "maybe"],
    ["SLUICE_HISTORY_FAILED_MS", "-1"],
    ["SLUICE_SCHEMA", "a; drop"],
    ["SLUICE_LISTEN_URL", "localhost"],
  ])("environment variable %s=%s is refused", async (name, value) => {
    setEnv(name, value);
    await expect(Client.connect({ url: "postgres://nobody.invalid" })).rejects.toMatchObject({
      code: "invalid_option",
      details: { option: name },
    });
  });

  test.each(["NUM_WORKERS", "SLUICE_PRESET", "SLUICE_METRICS_PORT"])(
    "wrong environment variable %s is refused only when a worker is created",
    async (name) => {
      const { url } = await house("");
      setEnv(name, "auto");
      const sluice = await connect({ url, config: false });
      expect(() => sluice.worker({ handlers })).toThrow(`${name} must be`);
    },
  );

  test.each([
    ["migrate", "no"],
    ["listen", 1],
    ["prepare", null],
    ["config", 5],
  ])("option %s: %j in code is refused", async (name, value) => {
    await expect(Client.connect({ url: "postgres://nobody.invalid", [name]: value })).rejects.toMatchObject({
      code: "invalid_option",
      details: { option: name },
    });
  });
});

test("a client with its own pool ignores an invalid DATABASE_URL", async () => {
  setEnv("DATABASE_URL", "nonsense");
  const { url } = await house("");
  const { default: pg } = await import("pg");
  const pool = new pg.Pool({ connectionString: url });
  pool.on("error", () => {});
  onTestFinished(() => pool.end());
  const client = await Client.connect({ pool, listen: false });
  await client.close();
});
