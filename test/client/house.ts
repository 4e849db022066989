import pg from "pg";
import { expect } from "vitest";
import { Sluice, type ConnectOptions, type ErrorCode, type TaskHandler, type Worker } from "../../src/index.js";
import { freshDatabase } from "../support/database.js";

/** A Sluice on a database of its own, and access to that database. */
export interface House {
  readonly url: string;
  readonly sluice: Sluice;
  /** Rows of a query, with "sluice" as the schema. */
  sql<Row = Record<string, unknown>>(text: string, params?: unknown[]): Promise<Row[]>;
  /** How many tasks there are in all. */
  tasks(): Promise<number>;
  /** A worker that runs and is stopped with the house. */
  work(handlers: readonly TaskHandler[], options?: Partial<Parameters<Sluice["worker"]>[0]>): Promise<Worker>;
  /** A client with a transaction of its own, begun. */
  begin(): Promise<pg.PoolClient>;
  close(): Promise<void>;
}

export async function openHouse(options: ConnectOptions = {}): Promise<House> {
  const database = await freshDatabase({ migrated: true });
  const pool = new pg.Pool({ connectionString: database.url, max: 5 });
  // Dropping the database cuts what is still connected.
  pool.on("error", () => {});
  const sluice = await Sluice.connect({ url: database.url, ...options });
  const sql = async <Row>(text: string, params: unknown[] = []): Promise<Row[]> =>
    (await pool.query(text, params)).rows as Row[];
  return {
    url: database.url,
    sluice,
    sql,
    tasks: async () => (await sql<{ n: number }>("select count(*)::int n from sluice.task"))[0]!.n,
    async work(handlers, more = {}) {
      const worker = sluice.worker({ handlers, pollIntervalMs: 20, ...more });
      await worker.start();
      return worker;
    },
    async begin() {
      const client = await pool.connect();
      await client.query("begin");
      return client;
    },
    async close() {
      await sluice.close();
      await pool.end();
      await database.drop();
    },
  };
}

/**
 * Backends of this database that wait for a lock on a table, whose name is $1. Databases of one template give their
 * tables the same oids, so those of other tests must be told apart.
 */
export const WAITING_FOR = `select pid from pg_locks where not granted and relation = $1::regclass
  and database = (select oid from pg_database where datname = current_database())`;

/** The code of the SluiceError that the call throws or rejects with, or "accepted". */
export async function codeOf(attempt: () => unknown): Promise<ErrorCode | "accepted"> {
  try {
    await attempt();
    return "accepted";
  } catch (e) {
    expect(e, "every refusal is a SluiceError").toMatchObject({ name: "SluiceError" });
    expect((e as Error).message.length, "and its message is short").toBeLessThan(1000);
    return (e as { code: ErrorCode }).code;
  }
}

/** Expects a refusal with this code, and that nothing was enqueued. */
export async function refused(house: House, code: ErrorCode, attempt: () => unknown) {
  const before = await house.tasks();
  expect(await codeOf(attempt)).toBe(code);
  expect(await house.tasks()).toBe(before);
}
