import pg from "pg";
import { onTestFinished } from "vitest";
import { Sluice, type ConnectOptions, type Worker, type WorkerOptions } from "../../src/index.js";
import { createAudit } from "../support/audit.js";
import { freshDatabase } from "../support/database.js";
import { startFleet, type Member } from "../support/fleet.js";
import type { WorkerConfig } from "../fault/programs/work.js";

/** A database of its own, and what a test needs to act on it and observe it. */
export interface Scene {
  readonly url: string;
  readonly sluice: Sluice;
  /** For queries, and for what an operator would do by hand. */
  readonly sql: pg.Pool;
  /** Starts a worker in this process. It stops with the test. */
  worker(options: WorkerOptions): Promise<Worker>;
  /** Starts worker processes. They are killed with the test. */
  fleet(size: number, config: Partial<WorkerConfig>): Promise<Member[]>;
}

export const PROGRAM = "test/fault/programs/worker.ts";

export async function scene(options: ConnectOptions = {}): Promise<Scene> {
  const database = await freshDatabase({ migrated: true });
  await createAudit(database.url);
  const sql = lookAt(database.url);
  const sluice = await Sluice.connect({ url: database.url, migrate: false, ...options });
  const workers: Worker[] = [];
  onTestFinished(async () => {
    await Promise.all(workers.map((worker) => worker.stop({ graceMs: 0 })));
    await sluice.close();
    await sql.end();
    await database.drop();
  });
  return {
    url: database.url,
    sluice,
    sql,
    worker: async (workerOptions) => {
      const worker = sluice.worker(workerOptions);
      workers.push(worker);
      await worker.start();
      return worker;
    },
    fleet: (size, config) =>
      startFleet(PROGRAM, size, () => ({ url: database.url, auditUrl: database.url, ...config })),
  };
}

/** A pool of the test's own. Its application name exempts it when a test cuts connections. */
export function lookAt(url: string): pg.Pool {
  const pool = new pg.Pool({ connectionString: url, application_name: "audit", max: 4 });
  pool.on("error", () => {});
  return pool;
}

const LOOK_EVERY_MS = 20;

/** Polls until there is an answer. The error names what it waited for. */
export async function until<T>(
  what: string,
  look: () => Promise<T | false | undefined | null> | T | false | undefined | null,
  withinMs = 20_000,
): Promise<T> {
  const deadline = performance.now() + withinMs;
  for (;;) {
    const found = await look();
    if (found !== false && found !== undefined && found !== null) return found;
    if (performance.now() > deadline) throw new Error(`waited ${withinMs} ms for: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

/** Waits until this many tasks have ended, with any outcome. */
export async function ended({ sql }: Scene, count: number, withinMs?: number): Promise<void> {
  await until(
    `${count} tasks to end`,
    async () => {
      const { rows } = await sql.query<{ n: number }>("select count(*)::int as n from sluice.done");
      return rows[0]!.n >= count;
    },
    withinMs,
  );
}

/** The database's clock, in microseconds. */
export async function databaseNow(sql: pg.Pool): Promise<number> {
  const { rows } = await sql.query<{ at: number }>(
    "select (extract(epoch from clock_timestamp()) * 1000000)::float8 as at",
  );
  return rows[0]!.at;
}

/** A promise and the functions that settle it: the signal that most tests wait for. */
export interface Signal<T = void> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

export function signal<T = void>(): Signal<T> {
  let resolve!: (value: T) => void;
  const promise = new Promise<T>((r) => (resolve = r));
  return { promise, resolve };
}
