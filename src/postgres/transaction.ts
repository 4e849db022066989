import type { Queryable } from "../core/ports.js";
import type { Database } from "./database.js";
import { toSluiceError } from "./fault.js";

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
 * connection of the same pool: if all of them were held by such transactions, they would wait for each other.
 */
export async function inTransaction<T>(
  db: Database,
  use: (tx: Queryable) => Promise<T>,
  pool: Lender = db.api,
): Promise<T> {
  let broken: Error | undefined;
  const client = await pool.connect().catch((e: unknown) => {
    throw toSluiceError(e);
  });
  // A connection that breaks between two statements tells by an event; unheard, it ends the process.
  const hear = (e: Error): void => void (broken ??= e);
  client.on("error", hear);
  try {
    await client.query("begin isolation level read committed");
    const result = await use(client);
    await client.query("commit");
    return result;
  } catch (e) {
    await client.query("rollback").catch((e2: unknown) => (broken = e2 as Error));
    throw toSluiceError(e);
  } finally {
    client.off("error", hear);
    client.release(broken);
  }
}
