import type { Queryable } from "../core/ports.js";
import type { Database } from "./database.js";
import { fromDriver, sqlstate } from "./fault.js";

/** A pool, as far as a transaction needs one. */
export interface Lender {
  connect(): Promise<Lent>;
}

interface Lent extends Queryable {
  on(event: "error", hear: (e: Error) => void): unknown;
  off(event: "error", hear: (e: Error) => void): unknown;
  /** With an error it is closed instead of used again. */
  release(e?: Error): void;
}

/**
 * Runs a transaction of ours on a connection for enqueue and queries, or of another pool. Inside it nothing may ask for a second
 * connection of the same pool: if all of them were held by such transactions, they would wait for each other. What `use`
 * throws passes through as it is; errors of the driver are told by `fromDriver`.
 */
export async function inTransaction<T>(
  db: Database,
  use: (tx: Queryable) => Promise<T>,
  pool: Lender = { connect: () => db.lend() },
): Promise<T> {
  let broken: Error | undefined;
  const client = await pool.connect().catch((e: unknown) => {
    throw fromDriver(e);
  });
  // A connection that breaks between two statements tells by an event; unheard, it ends the process.
  const hear = (e: Error): void => void (broken ??= e);
  client.on("error", hear);
  const tx: Queryable = {
    query: (text, params) =>
      client.query(text, params).catch((e: unknown) => {
        // guard: why the server ended it -> test/worker/workflow-place.test.ts: "a transaction that the server ended because it stood still counts as a try, not as an outage"
        throw fromDriver(sqlstate(e) === null ? (broken ?? e) : e);
      }),
  };
  try {
    await tx.query("begin isolation level read committed");
    const result = await use(tx);
    await tx.query("commit");
    return result;
  } catch (e) {
    await client.query("rollback").catch((e2: unknown) => (broken ??= e2 as Error));
    throw e;
  } finally {
    client.off("error", hear);
    client.release(broken);
  }
}
