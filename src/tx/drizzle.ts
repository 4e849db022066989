import type { Queryable } from "../core/ports.js";
import { asPgError, refuseTx } from "./fault.js";

/** What `db.transaction` of Drizzle hands to its callback, whatever driver is below it. */
export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>;
  /** Only a transaction has it. */
  rollback(): never;
}

/** The transaction of Drizzle as `tx`, with the drivers node-postgres and postgres-js. */
export function fromDrizzle(tx: DrizzleTransaction): Queryable {
  if (typeof tx?.execute !== "function" || typeof tx.rollback !== "function") {
    refuseTx("fromDrizzle needs the transaction that db.transaction() gives you, not db itself");
  }
  return {
    async query(text, params = []) {
      refuseEnded(tx);
      try {
        return { rows: rowsOf(await tx.execute(statementOf(text, params) as never)) };
      } catch (e) {
        // Drizzle puts the statement and all its parameters into the message; the driver's error is within.
        throw asPgError((e as { cause?: unknown } | null)?.cause ?? e);
      }
    },
  };
}

/** Text and parameters as they are. Drizzle's own way to say this is a template, which takes no text. */
function statementOf(sql: string, params: unknown[]): object {
  return { getSQL: () => ({ toQuery: () => ({ sql, params }) }) };
}

/** pg gives an object with rows, postgres.js the rows themselves. */
function rowsOf(result: unknown): unknown[] {
  return Array.isArray(result) ? [...(result as unknown[])] : (result as { rows: unknown[] }).rows;
}

interface OnPg {
  readonly session?: { readonly client?: { getTransactionStatus?(): unknown } };
}

/** pg knows whether its connection is in a transaction. With postgres.js this cannot be seen. */
function refuseEnded(tx: DrizzleTransaction): void {
  const status = (tx as OnPg).session?.client?.getTransactionStatus?.();
  if (status === "I") refuseTx("the transaction of Drizzle has ended: await the enqueue inside it");
}
