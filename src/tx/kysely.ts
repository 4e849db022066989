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

/** What Kysely hands to the callback of `db.transaction().execute`, or returns from `startTransaction`. */
export interface KyselyTransaction {
  /** False for the database itself, which therefore does not compile here. */
  readonly isTransaction: true;
  executeQuery(query: KyselyQuery): Promise<{ rows: unknown[] }>;
}

/** The transaction of Kysely as `tx`. */
export function fromKysely(trx: KyselyTransaction): Queryable {
  if (typeof trx?.executeQuery !== "function" || !trx.isTransaction) {
    refuseTx("fromKysely needs the transaction that db.transaction() gives you, not db itself");
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

/** Kysely refuses a transaction that has ended, but says so in the message alone. */
function refuseEnded(e: unknown): void {
  const message = e instanceof Error ? e.message : "";
  if (!/^Transaction is already (committed|rolled back)/.test(message)) return;
  refuseTx("the transaction of Kysely has ended: await the enqueue inside it", e);
}

/** What Kysely's CompiledQuery.raw makes; written out, so that Kysely need not be imported. */
function compiled(sql: string, parameters: unknown[]): KyselyQuery {
  const query = { kind: "RawNode", sqlFragments: [sql], parameters: [] } as const;
  return { sql, parameters, query, queryId: { queryId: crypto.randomUUID() } };
}
