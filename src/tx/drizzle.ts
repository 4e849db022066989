import type { Queryable } from "../core/ports.js";
import { asPgError, refuseTx } from "./fault.js";

/** The transaction that Drizzle's `db.transaction` passes to its callback, with any driver. */
export interface DrizzleTransaction {
  execute(query: never): PromiseLike<unknown>;
  /** Only a transaction has this method. */
  rollback(): never;
}

/** Adapts a Drizzle transaction for use as `tx`. Supports the drivers node-postgres and postgres-js. */
export function fromDrizzle(tx: DrizzleTransaction): Queryable {
  if (typeof tx?.execute !== "function" || typeof tx.rollback !== "function") {
    refuseTx("fromDrizzle needs the transaction from db.transaction(), not db itself");
  }
  return {
    async query(text, params = []) {
      refuseEnded(tx);
      try {
        return { rows: rowsOf(await tx.execute(statementOf(text, params) as never)) };
      } catch (e) {
        // Drizzle's message contains the statement and all its parameters; the driver's error is its cause.
        throw asPgError((e as { cause?: unknown } | null)?.cause ?? e);
      }
    },
  };
}

/** Passes text and parameters unchanged. Drizzle's own API for this is a template tag, which takes no plain text. */
function statementOf(sql: string, params: unknown[]): object {
  return { getSQL: () => ({ toQuery: () => ({ sql, params }) }) };
}

/** pg returns an object with rows, postgres.js the rows themselves. */
function rowsOf(result: unknown): unknown[] {
  return Array.isArray(result) ? [...(result as unknown[])] : (result as { rows: unknown[] }).rows;
}

interface OnPg {
  readonly session?: { readonly client?: { getTransactionStatus?(): unknown } };
}

/** With pg, the connection shows whether it is in a transaction. With postgres.js, this cannot be detected. */
function refuseEnded(tx: DrizzleTransaction): void {
  const status = (tx as OnPg).session?.client?.getTransactionStatus?.();
  if (status === "I") refuseTx("the Drizzle transaction has ended: await the enqueue inside it");
}
