import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import { silentLogger } from "../../src/core/ports.js";
import { Sluice } from "../../src/index.js";
import { startEmbedded, type Embedded, type EmbeddedOptions } from "../../src/embedded/index.js";
import { list } from "../../src/embedded/files.js";
import { startedAt } from "../../src/embedded/living.js";
import { until } from "../../src/embedded/until.js";
import { spawnTs, type SpawnedTs } from "../support/process.js";

// Each start cleans up abandoned servers in the temporary directory. In our own directory, only these tests do.
const outside = tmpdir();
const place = mkdtempSync(join(outside, "sluice-test-"));
const cleanups: (() => Promise<unknown>)[] = [];

beforeAll(() => {
  chmodSync(place, 0o755);
  process.env.TMPDIR = place;
});

afterEach(async () => {
  for (const cleanup of cleanups.splice(0).toReversed()) await cleanup();
});

afterAll(() => {
  process.env.TMPDIR = outside;
  rmSync(place, { recursive: true, force: true });
});

async function start(options?: EmbeddedOptions): Promise<Embedded> {
  const server = await startEmbedded(options);
  cleanups.push(() => server.stop());
  return server;
}

type Described = Omit<Embedded, "stop">;

async function startElsewhere(dataDir: string, then: "stay" | "end"): Promise<Described & { process: SpawnedTs }> {
  const process = spawnTs("test/embedded/child.ts", [dataDir, then]);
  cleanups.push(() => process.kill("SIGKILL"));
  const line = await process.line((text) => text.startsWith("server "));
  return { ...(JSON.parse(line.slice("server ".length)) as Described), process };
}

async function query(url: string, text: string): Promise<Record<string, unknown>> {
  const client = new pg.Client(url);
  await client.connect();
  try {
    return (await client.query(text)).rows[0] as Record<string, unknown>;
  } finally {
    await client.end();
  }
}

const isRunning = (pid: number): boolean => startedAt(pid) !== undefined;

async function ended(pid: number): Promise<boolean> {
  return (await until(10_000, () => !isRunning(pid) || undefined)) === true;
}

test("an ephemeral server answers queries, and stopping it removes its data", async () => {
  const server = await start();
  expect(await query(server.url, "select 1 + 1 as two")).toEqual({ two: 2 });
  await server.stop();
  expect(isRunning(server.pid)).toBe(false);
  expect(existsSync(server.dataDir)).toBe(false);
});

test("stopping an embedded server twice is safe", async () => {
  const server = await start();
  await Promise.all([server.stop(), server.stop()]);
  expect(isRunning(server.pid)).toBe(false);
});

test("two ephemeral servers are independent", async () => {
  const [one, two] = await Promise.all([start(), start()]);
  expect(one.pid).not.toBe(two.pid);
  await one.stop();
  expect(await query(two.url, "select 1 as one")).toEqual({ one: 1 });
});

test("an embedded server has fsync on unless a setting turns it off", async () => {
  const safe = await start();
  expect(await query(safe.url, "show fsync")).toEqual({ fsync: "on" });
  const fast = await start({ settings: { fsync: "off" } });
  expect(await query(fast.url, "show fsync")).toEqual({ fsync: "off" });
});

test("an embedded server requires its password, which only its owner can read", async () => {
  const server = await start();
  const stranger = new URL(server.url);
  stranger.password = "guess";
  await expect(query(stranger.href, "select 1")).rejects.toMatchObject({ code: "28P01" });
  expect(statSync(join(server.dataDir, "password")).mode & 0o077).toBe(0);
});

test("an embedded server listens only on the loopback address", async () => {
  const server = await start();
  expect(await query(server.url, "show listen_addresses")).toEqual({
    listen_addresses: "127.0.0.1",
  });
  expect(await query(server.url, "show unix_socket_directories")).toEqual({
    unix_socket_directories: "",
  });
  const refused = await new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.2", port: Number(new URL(server.url).port) });
    socket.once("error", () => resolve(true));
    socket.once("connect", () => resolve(socket.destroy() === undefined));
  });
  expect(refused).toBe(true);
});

test("a data directory keeps its data and its password across restarts", async () => {
  const dataDir = join(place, "kept");
  const first = await start({ dataDir });
  await query(first.url, "create table note as select 'still here' as text");
  await first.stop();
  expect(isRunning(first.pid)).toBe(false);
  const second = await start({ dataDir });
  expect(await query(second.url, "select text from note")).toEqual({ text: "still here" });
  expect(new URL(second.url).password).toBe(new URL(first.url).password);
});

test("processes share the server of a data directory, and the last one stops it", async () => {
  const dataDir = join(place, "shared");
  const [here, there] = await Promise.all([start({ dataDir }), startElsewhere(dataDir, "stay")]);
  expect(there.pid).toBe(here.pid);
  expect(there.url).toBe(here.url);
  await here.stop();
  expect(await query(there.url, "select 1 as one")).toEqual({ one: 1 });
  const back = await start({ dataDir });
  expect(back.pid).toBe(here.pid);
  await there.process.kill("SIGKILL");
  await back.stop();
  expect(isRunning(here.pid)).toBe(false);
});

test("five concurrent processes start one server on a data directory", async () => {
  const dataDir = join(place, "rush");
  const all = await Promise.all(Array.from({ length: 5 }, () => startElsewhere(dataDir, "stay")));
  expect(new Set(all.map((server) => server.pid)).size).toBe(1);
  await Promise.all(all.slice(1).map((server) => server.process.kill("SIGKILL")));
  const last = await start({ dataDir });
  expect(last.pid).toBe(all[0]!.pid);
});

test("a persistent server outlives its last process until it is started without that option and stopped", async () => {
  const dataDir = join(place, "persistent");
  const first = await start({ dataDir, persistent: true });
  await first.stop();
  const passing = await start();
  expect(isRunning(first.pid)).toBe(true);
  await passing.stop();
  const second = await start({ dataDir });
  expect(second.pid).toBe(first.pid);
  await second.stop();
  expect(isRunning(first.pid)).toBe(false);
});

test("a server whose owner was killed is reused by the next start on its data directory", async () => {
  const dataDir = join(place, "orphan");
  const owner = await startElsewhere(dataDir, "stay");
  await owner.process.kill("SIGKILL");
  expect(isRunning(owner.pid)).toBe(true);
  const heir = await start({ dataDir });
  expect(heir.pid).toBe(owner.pid);
  expect(await query(heir.url, "select 1 as one")).toEqual({ one: 1 });
});

test("the next start stops servers whose owners were killed and removes their temporary data", async () => {
  const dataDir = join(place, "abandoned");
  const [named, unnamed] = await Promise.all([startElsewhere(dataDir, "stay"), startElsewhere("", "stay")]);
  await Promise.all([named.process.kill("SIGKILL"), unnamed.process.kill("SIGKILL")]);
  expect([isRunning(named.pid), isRunning(unnamed.pid)]).toEqual([true, true]);
  const said: unknown[] = [];
  const info = (message: string, fields?: unknown): unknown => said.push([message, fields]);
  await start({ logger: { ...silentLogger, info } });
  expect([isRunning(named.pid), isRunning(unnamed.pid)]).toEqual([false, false]);
  expect([existsSync(named.dataDir), existsSync(unnamed.dataDir)]).toEqual([true, false]);
  expect(said).toContainEqual(["an abandoned PostgreSQL was stopped", { dataDir: unnamed.dataDir }]);
});

test("an embedded server stops when its process exits", async () => {
  const dataDir = join(place, "ends");
  const [named, unnamed] = await Promise.all([startElsewhere(dataDir, "end"), startElsewhere("", "end")]);
  expect([await named.process.exit, await unnamed.process.exit]).toEqual([0, 0]);
  expect(existsSync(unnamed.dataDir)).toBe(false);
  const next = await start({ dataDir });
  expect(next.pid).not.toBe(named.pid);
  expect([isRunning(named.pid), isRunning(unnamed.pid)]).toEqual([false, false]);
  expect(await query(next.url, "select 1 as one")).toEqual({ one: 1 });
});

test("an embedded server recovers committed data after a kill", async () => {
  const dataDir = join(place, "crash");
  const before = await start({ dataDir });
  await query(before.url, "create table note as select 'committed' as text");
  process.kill(before.pid, "SIGKILL");
  expect(await ended(before.pid)).toBe(true);
  const after = await start({ dataDir });
  expect(after.pid).not.toBe(before.pid);
  expect(await query(after.url, "select text from note")).toEqual({ text: "committed" });
});

test("a start succeeds after another process was killed while it created the data directory", async () => {
  const dataDir = join(place, "half");
  const half = spawnTs("test/embedded/child.ts", [dataDir, "stay"]);
  const begun = (name: string): boolean => existsSync(join(dataDir, name, "PG_VERSION"));
  const seen = await until(10_000, () => (list(dataDir).some(begun) ? true : undefined));
  await half.kill("SIGKILL");
  expect(seen).toBe(true);
  const server = await start({ dataDir });
  expect(await query(server.url, "select 1 as one")).toEqual({ one: 1 });
});

test("a start ignores a stale pid file that names an unrelated process", async () => {
  const dataDir = join(place, "stranger");
  await (await start({ dataDir })).stop();
  const file = join(dataDir, "pgdata", "postmaster.pid");
  writeFileSync(file, `${process.ppid}\n${dataDir}\n1\n5432\n\n127.0.0.1\n\nready\n`, {
    mode: 0o644,
  });
  const server = await start({ dataDir });
  expect(await query(server.url, "select 1 as one")).toEqual({ one: 1 });
});

test("an embedded server never runs as root, even on data that only root can reach", async () => {
  const locked = join(place, "locked");
  mkdirSync(locked, { mode: 0o700 });
  const server = await start({ dataDir: join(locked, "data") });
  const uid = lstatSync(join(server.dataDir, "pgdata")).uid;
  expect(uid).not.toBe(0);
  if (process.getuid?.() !== 0) expect(uid).toBe(process.getuid?.());
  if (process.platform === "linux") {
    const status = readFileSync(`/proc/${server.pid}/status`, "utf8");
    expect(status).toMatch(new RegExp(`^Uid:\\s+${uid}\\s+${uid}\\s+${uid}`, "m"));
  }
});

test("an unusable data directory fails with an error that names it", async () => {
  await expect(startEmbedded({ dataDir: "/dev/null" })).rejects.toMatchObject({
    code: "embedded_failed",
    message: expect.stringContaining("/dev/null") as string,
  });
  const dataDir = join(place, "no-cluster");
  mkdirSync(join(dataDir, "pgdata"), { recursive: true });
  await expect(startEmbedded({ dataDir })).rejects.toMatchObject({
    code: "embedded_failed",
    message: expect.stringContaining(dataDir) as string,
  });
});

test("a persistent server without a data directory is refused", async () => {
  await expect(startEmbedded({ persistent: true })).rejects.toMatchObject({
    code: "invalid_option",
  });
});

test("a start with another port is refused while the server runs", async () => {
  const dataDir = join(place, "port");
  const server = await start({ dataDir });
  const other = Number(new URL(server.url).port) === 5999 ? 5998 : 5999;
  await expect(startEmbedded({ dataDir, port: other })).rejects.toMatchObject({
    code: "embedded_failed",
    message: expect.stringContaining("A server already uses") as string,
  });
});

test("connect({ embedded: true }) tells the URL of its server, in code and in the log", async () => {
  const lines: unknown[] = [];
  const logger = { ...silentLogger, info: (message: string, fields?: object) => void lines.push([message, fields]) };
  const sluice = await Sluice.connect({ embedded: true, logger });
  cleanups.push(() => sluice.close());
  const url = sluice.embeddedUrl!;
  expect(url).toMatch(/^postgresql:\/\/postgres:\w+@127\.0\.0\.1:\d+\/postgres$/);
  expect(lines).toContainEqual(["an embedded PostgreSQL was started", { url }]);
  expect(await query(url, "select count(*)::int as tasks from sluice.task")).toEqual({ tasks: 0 });
  const other = await Sluice.connect({ url, listen: false });
  cleanups.push(() => other.close());
  expect(other.embeddedUrl).toBeNull();
});
