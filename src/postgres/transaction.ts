import type { Queryable } from "../core/ports.js";
import type { Database } from "./database.js";
import { fromDriver, sqlstate } from "./errors.js";
import { destroy } from "./part.js";

/** The part of a pool that a transaction needs. */
export interface Lender {
  connect(): Promise<Lent>;
}

interface Lent extends Queryable {
  on(event: "error", hear: (e: Error) => void): unknown;
  off(event: "error", hear: (e: Error) => void): unknown;
  /** With an error, the connection is closed instead of reused. */
  release(e?: Error): void;
}

// No statement of ours takes this long, and a connection can be dead without a reset: without a deadline its place in
// the pool would be lost for good.
const REPLY_MS_MAX = 30_000;

/**
 * Runs a transaction of ours on a connection for enqueue and queries, or on one of another pool. Nothing inside it may
 * request a second connection of the same pool: if such transactions held all of them, they would wait for each other.
 * Errors thrown by `use` pass through unchanged; `fromDriver` converts errors of the driver. A statement without a
 * reply for `replyMsMax` ends the connection.
 */
export async function inTransaction<T>(
  db: Database,
  use: (tx: Queryable) => Promise<T>,
  pool: Lender = { connect: () => db.lend() },
  replyMsMax: number = REPLY_MS_MAX,
): Promise<T> {
  let broken: Error | undefined;
  const client = await pool.connect().catch((e: unknown) => {
    throw fromDriver(e);
  });
  // A connection that breaks between two statements emits an error event. Without a listener, that event ends the
  // process.
  const hear = (e: Error): void => void (broken ??= e);
  client.on("error", hear);
  const ask: Queryable["query"] = async (text, params) => {
    // guard: a transaction of ours has a deadline per statement -> test/fault/half-open.test.ts: "a transaction on a connection that swallows a statement ends, and its connection is replaced"
    const late = setTimeout(() => {
      broken ??= new Error(`the server did not reply within ${replyMsMax} ms`);
      /* guard:deadline */ destroy(client); /* end */
    }, replyMsMax);
    try {
      return await client.query(text, params);
    } finally {
      clearTimeout(late);
    }
  };
  const tx: Queryable = {
    query: (text, params) =>
      ask(text, params).catch((e: unknown) => {
        // guard: why the server ended it -> test/runs/placer.test.ts: "a placing transaction that the server ends for being idle counts as a try, not as an outage"
        throw fromDriver(/* guard:cause */ sqlstate(e) === null ? (broken ?? e) : /* end */ e);
      }),
  };
  try {
    await tx.query("begin isolation level read committed");
    const result = await use(tx);
    await tx.query("commit");
    return result;
  } catch (e) {
    await ask("rollback").catch((e2: unknown) => (broken ??= e2 as Error));
    throw e;
  } finally {
    // A destroyed connection may still emit an error.
    if (broken === undefined) client.off("error", hear);
    client.release(broken);
  }
}
