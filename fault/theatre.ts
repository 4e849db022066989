// Everything a run stands on: two servers, a disk, a log, programs, proxies. Opened and cleared away here.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { startEmbedded } from "../src/embedded/index.js";
import { Sluice } from "../src/index.js";
import { watchOutcomes } from "./accepted.js";
import { compile, type Programs } from "./compile.js";
import { parts } from "./load/parts.js";
import { contracts, groups } from "./load/terms.js";
import { LogWriter } from "./log.js";
import { isJump } from "./faults/jump.js";
import { MovedClock } from "./moved-clock.js";
import type { Options } from "./options.js";
import { WireProxy } from "./proxy.js";
import { sabotage } from "./sabotage.js";
import { NO_SMALL_DISK, openDisk, type Disk } from "./server/disk.js";
import { QueueServerProcess } from "./server/queue.js";

export interface Theatre {
  readonly programs: Programs;
  readonly server: QueueServerProcess;
  readonly logUrl: string;
  readonly log: LogWriter;
  readonly sql: pg.Pool;
  readonly clock: MovedClock;
  readonly sluice: Sluice;
  readonly producers: WireProxy;
  /** Where things are, for --keep. */
  readonly folder: string;
  close(): Promise<void>;
}

const RATE = 300;
const DISK_MB = 320;
const DISK_BYTES_PER_TASK = 4_096;
const LOG_SETTINGS = { fsync: "off", synchronous_commit: "off", max_connections: "60" };
const silent = { debug() {}, info() {}, warn() {}, error() {} };

/** How many tasks a second, and in all if that was asked for. */
export function loadOf({ tasks, seconds }: Options): { rate: number; tasks: number | null } {
  return { rate: tasks === null ? RATE : tasks / seconds, tasks };
}

export async function openTheatre(options: Options): Promise<Theatre> {
  const closers: (() => unknown)[] = [];
  const close = async (): Promise<void> => {
    // Backwards, and each whatever became of the others.
    for (const closer of closers.splice(0).toReversed())
      await Promise.resolve()
        .then(closer)
        .catch((e: unknown) => process.stderr.write(`clearing up: ${String(e)}\n`));
  };
  try {
    return { ...(await build(options, closers)), close };
  } catch (e) {
    await close();
    throw e;
  }
}

async function build(options: Options, closers: (() => unknown)[]): Promise<Omit<Theatre, "close">> {
  const programs = compile();
  closers.push(() => programs.remove());
  const folder = mkdtempSync(join(tmpdir(), "sluice-fault-"));
  closers.push(() => options.keep || rmSync(folder, { recursive: true, force: true }));
  const disk = diskOf(folder, options);
  closers.push(() => options.keep || disk.remove());
  const server = await QueueServerProcess.start(disk, join(folder, "queue.log"));
  closers.push(() => server.stop());
  const logData = options.keep ? { dataDir: join(folder, "log") } : {};
  const logServer = await startEmbedded({ ...logData, settings: LOG_SETTINGS });
  closers.push(() => logServer.stop());
  const log = await LogWriter.open(logServer.url, "harness");
  closers.push(() => log.close());
  await log.create();
  const sql = poolOf(server.url);
  closers.push(() => sql.end());
  const sluice = await Sluice.connect({ url: server.url, apiConnections: 5, logger: silent });
  closers.push(() => sluice.close());
  const clock = new MovedClock(sql, log);
  await prepare({ sql, sluice, clock }, options);
  const producers = await WireProxy.start(server.url);
  closers.push(() => producers.close());
  return { programs, server, logUrl: logServer.url, log, sql, clock, sluice, producers, folder };
}

function diskOf(folder: string, options: Options): Disk {
  const { rate, tasks } = loadOf(options);
  const expected = tasks ?? rate * options.seconds;
  const sizeMb = Math.ceil(DISK_MB + (expected * DISK_BYTES_PER_TASK) / 2 ** 20);
  const disk = openDisk(join(folder, "disk"), sizeMb);
  if (!disk.small && options.faults.some(({ name }) => name === "disk-full")) {
    disk.remove();
    throw new Error(`disk-full: ${NO_SMALL_DISK}; leave it out with --only`);
  }
  return disk;
}

function poolOf(url: string): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max: 4,
    application_name: "fault",
    connectionTimeoutMillis: 3_000,
    query_timeout: 30_000,
  });
  // It breaks with the server; the next query connects anew.
  pool.on("error", () => {});
  return pool;
}

/** Everything is declared before anybody works, so that each limit has its number from the first task on. */
async function prepare(
  { sql, sluice, clock }: Pick<Theatre, "sql" | "sluice" | "clock">,
  options: Options,
): Promise<void> {
  await sluice.sync([...groups, ...Object.values(contracts), ...Object.values(parts)]);
  await watchOutcomes(sql);
  if (options.faults.some(isJump)) await clock.create();
  if (options.sabotage !== null) await sabotage(sql, options.sabotage);
}
