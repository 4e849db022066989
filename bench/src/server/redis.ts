import { execFileSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Redis } from "ioredis";
import { freePort, halt, identity, launch, ready } from "./child.js";

/** A Redis of the bench's own. */
export interface RedisServer {
  readonly url: string;
  readonly pid: number;
  readonly version: string;
  readonly about: string;
  stop(): Promise<void>;
}

const PROGRAM = "redis-server";

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
    const server = launch(PROGRAM, argumentsOf(folder, port), folder, who);
    const url = `redis://127.0.0.1:${port}`;
    await ready("Redis", server, folder, () => ping(url));
    const about = `Redis ${version}: ${ABOUT}`;
    return {
      url,
      pid: server.pid!,
      version,
      about,
      stop: () => halt(server, "SIGKILL").finally(remove),
    };
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

function argumentsOf(folder: string, port: number): string[] {
  const settings = { ...SETTINGS, port: String(port), bind: "127.0.0.1", dir: folder };
  return Object.entries(settings).flatMap(([name, value]) => [`--${name}`, value]);
}

async function ping(url: string): Promise<void> {
  const client = new Redis(url, { lazyConnect: true, retryStrategy: () => null });
  // The failure is the rejection of connect(); without a listener it would be printed as well.
  client.on("error", () => {});
  try {
    await client.connect();
    await client.ping();
  } finally {
    client.disconnect();
  }
}
