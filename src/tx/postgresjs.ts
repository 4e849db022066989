import type { Queryable } from "../core/ports.js";
import { asPgError, refuseTx } from "./fault.js";

/** What `sql.begin` of postgres.js hands to its callback. */
export interface PostgresJsTransaction {
  unsafe(text: string, params?: never[]): PromiseLike<readonly unknown[]>;
  /** Only a transaction has it. */
  savepoint(...args: never[]): unknown;
}

/**
 * The transaction of postgres.js as `tx`. Once it has ended postgres.js would run the statement on its
 * own, and there is nothing on it to see that by: await every enqueue inside the callback.
 */
export function fromPostgresJs(tx: PostgresJsTransaction): Queryable {
  if (typeof tx?.unsafe !== "function" || typeof tx.savepoint !== "function") {
    refuseTx("fromPostgresJs needs the transaction that sql.begin() gives you, not sql itself");
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
