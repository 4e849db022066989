import type { Queryable } from "../core/ports.js";
import { refuseTx } from "./fault.js";

/** The transaction that `knex.transaction` passes to its callback, or resolves to without one. */
export interface KnexTransaction {
  raw(text: string, bindings: readonly never[]): PromiseLike<{ rows: unknown[] }>;
  /** Only a transaction has this method. */
  isCompleted(): boolean;
}

/** Adapts a Knex transaction for use as `tx`. */
export function fromKnex(trx: KnexTransaction): Queryable {
  if (typeof trx?.raw !== "function" || typeof trx.isCompleted !== "function") {
    refuseTx("fromKnex needs the transaction from knex.transaction(), not knex itself");
  }
  return {
    async query(text, params = []) {
      if (trx.isCompleted()) refuseTx("the Knex transaction has ended: await the enqueue inside it");
      const { sql, bindings } = positional(text, params);
      try {
        return { rows: (await trx.raw(sql, bindings as never[])).rows };
      } catch (e) {
        throw withoutStatement(e, text);
      }
    },
  };
}

/**
 * Knex numbers parameters itself: each $n becomes a question mark with its value, in the order of the text, and a
 * question mark in the text is escaped. The values are never inspected.
 */
function positional(text: string, params: unknown[]): { sql: string; bindings: unknown[] } {
  const bindings: unknown[] = [];
  const sql = text.replace(/\$(\d+)|\?/g, (_, n?: string) => {
    if (n === undefined) return "\\?";
    bindings.push(params[Number(n) - 1]);
    return "?";
  });
  return { sql, bindings };
}

/** Removes the statement that Knex puts before pg's message. */
function withoutStatement(e: unknown, text: string): unknown {
  const prefix = `${text} - `;
  if (e instanceof Error && e.message.startsWith(prefix)) e.message = e.message.slice(prefix.length);
  return e;
}
