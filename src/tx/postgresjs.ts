import type { Queryable } from "../core/ports.js";
import { asPgError, refuseTx } from "./fault.js";

/** The transaction that `sql.begin` of postgres.js passes to its callback. */
export interface PostgresJsTransaction {
  unsafe(text: string, params?: never[]): PromiseLike<readonly unknown[]>;
  /** Only a transaction has this method. */
  savepoint(...args: never[]): unknown;
}

/**
 * Adapts a postgres.js transaction for use as `tx`. Await every enqueue inside the callback: once the transaction has
 * ended, postgres.js would run the statement outside it, and nothing on the object reveals that it has ended.
 */
export function fromPostgresJs(tx: PostgresJsTransaction): Queryable {
  if (typeof tx?.unsafe !== "function" || typeof tx.savepoint !== "function") {
    refuseTx("fromPostgresJs needs the transaction from sql.begin(), not sql itself");
  }
  return {
    async query(text, params = []) {
      try {
        return { rows: [...(await tx.unsafe(text, params as never[]))] };
      } catch (e) {
        throw asPgError(e);
      }
    },
  };
}
