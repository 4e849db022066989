import { execFileSync, spawn, type ChildProcess } from "node:child_process";
import { chownSync, closeSync, mkdtempSync, openSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort, identity, type Identity } from "./own.js";

/** A Redis of the bench's own. */
export interface RedisServer {
  readonly url: string;
  readonly pid: number;
  readonly version: string;
  readonly about: string;
  stop(): Promise<void>;
}

const PROGRAM = "redis-server";
const READY_MS_MAX = 10_000;

/**
 * Everything is written to a log, which is flushed to disk once a second: what BullMQ's guide for
 * production advises, and so what its numbers elsewhere mean. PostgreSQL, as the bench runs it,
 * flushes before it confirms. The strict counterpart would be "always", but few run a Redis that way;
 * the difference is to Redis's advantage and is said in `about`.
 *
 * No snapshots and no rewriting of the log while something is measured, just as no checkpoint of
 * PostgreSQL falls into it. Nothing may ever be evicted: a queue is not a cache.
 */
const SETTINGS = {
  appendonly: "yes",
  appendfsync: "everysec",
  "auto-aof-rewrite-percentage": "0",
  save: "",
  "maxmemory-policy": "noeviction",
} as const;

const ABOUT = "append-only log flushed once a second, so a crash may lose the last second";

/** Starts a Redis in a temporary folder; stop() removes it. An error if none is installed. */
export async function startRedis(): Promise<RedisServer> {
  const version = installed();
  const who = identity();
  const folder = mkdtempSync(join(tmpdir(), "sluice-bench-redis-"));
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    if (who.uid !== undefined) chownSync(folder, who.uid, who.gid!);
    const port = await freePort();
    const server = launch(folder, who, port);
    const url = `redis://127.0.0.1:${port}`;
    await ready(server, url, join(folder, "log"));
    const about = `Redis ${version}: ${ABOUT}`;
    return { url, pid: server.pid!, version, about, stop: () => halt(server).finally(remove) };
  } catch (e) {
    remove();
    throw e;
  }
}

function installed(): string {
  try {
    const text = execFileSync(PROGRAM, ["--version"], { encoding: "utf8", stdio: "pipe" });
    return /v=(\S+)/.exec(text)?.[1] ?? "unknown";
  } catch (e) {
    throw new Error(`${PROGRAM} does not run here: apt-get install ${PROGRAM}`, { cause: e });
  }
}

function launch(folder: string, who: Identity, port: number): ChildProcess {
  const settings = { ...SETTINGS, port: String(port), bind: "127.0.0.1", dir: folder };
  const args = Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
  const log = openSync(join(folder, "log"), "a");
  try {
    return spawn(PROGRAM, args, {
      ...who,
      cwd: folder,
      stdio: ["ignore", log, log],
      // Ctrl-C must reach it through stop(), after the workers are gone.
      detached: true,
    });
  } finally {
    closeSync(log);
  }
}

async function ready(server: ChildProcess, url: string, log: string): Promise<void> {
  const until = Date.now() + READY_MS_MAX;
  for (;;) {
    const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
    // The failure is the rejection of connect(); without a listener it would be printed as well.
    client.on("error", () => {});
    try {
      await client.connect();
      await client.ping();
      return;
    } catch (e) {
      if (server.exitCode !== null || Date.now() > until) {
        throw new Error(`Redis did not start:\n${readFileSync(log, "utf8")}`, { cause: e });
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    } finally {
      client.disconnect();
    }
  }
}

async function halt(server: ChildProcess): Promise<void> {
  if (server.exitCode !== null || server.signalCode !== null) return;
  const gone = new Promise((resolve) => server.once("exit", resolve));
  // Killed: the data is thrown away.
  server.kill("SIGKILL");
  await gone;
}
