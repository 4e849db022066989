import type { Queryable } from "../core/ports.js";
import { asPgError, refuseTx } from "./fault.js";

interface KyselyQuery {
  readonly sql: string;
  readonly parameters: readonly unknown[];
  readonly query: {
    readonly kind: "RawNode";
    readonly sqlFragments: readonly string[];
    readonly parameters: readonly never[];
  };
  readonly queryId: { readonly queryId: string };
}

/**
 * The transaction that Kysely passes to the callback of `db.transaction().execute`, or returns from `startTransaction`.
 */
export interface KyselyTransaction {
  /** False for the database itself, so passing the database does not compile. */
  readonly isTransaction: true;
  executeQuery(query: KyselyQuery): Promise<{ rows: unknown[] }>;
}

/** Adapts a Kysely transaction for use as `tx`. */
export function fromKysely(trx: KyselyTransaction): Queryable {
  if (typeof trx?.executeQuery !== "function" || !trx.isTransaction) {
    refuseTx("fromKysely needs the transaction from db.transaction(), not db itself");
  }
  return {
    async query(text, params = []) {
      try {
        return { rows: (await trx.executeQuery(compiled(text, params))).rows };
      } catch (e) {
        refuseEnded(e);
        throw asPgError(e);
      }
    },
  };
}

/** Kysely rejects statements on a transaction that has ended, but only the message says so. */
function refuseEnded(e: unknown): void {
  const message = e instanceof Error ? e.message : "";
  if (!/^Transaction is already (committed|rolled back)/.test(message)) return;
  refuseTx("the Kysely transaction has ended: await the enqueue inside it", e);
}

/** Same as Kysely's CompiledQuery.raw, written out so that Kysely need not be imported. */
function compiled(sql: string, parameters: unknown[]): KyselyQuery {
  const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] } as const;
  return { sql, parameters, query, queryId: { queryId: crypto.randomUUID() } };
}
