import { SluiceError } from "../core/error.js";
import type { Queryable } from "../core/ports.js";
import { quote } from "../core/quote.js";

/**
 * Returns the caller's transaction, checked to be able to run SQL. An object that only resembles one would fail later,
 * with an error that looks like an unavailable database.
 */
export function checkTx(tx: Queryable | undefined): Queryable | undefined {
  if (tx === undefined) return undefined;
  if (typeof (tx as Partial<Queryable> | null)?.query !== "function") {
    throw refusal(`tx must have a function query(text, params), which ${quote(tx)} does not have`);
  }
  // pg's Pool has the same query(), but runs it on any free connection, outside of a transaction.
  if (typeof (tx as { totalCount?: unknown }).totalCount === "number") {
    throw refusal("tx must be a client in a transaction, not a pool");
  }
  return { query: async (text, params) => checkReply(await ask(tx, text, params)) };
}

async function ask(tx: Queryable, text: string, params?: unknown[]): Promise<unknown> {
  try {
    return await tx.query(text, params);
  } catch (e) {
    // No database throws these errors: the query function does not accept a text and parameters.
    if (e instanceof TypeError || e instanceof ReferenceError)
      throw refusal(`tx.query(text, params) threw: ${e.message}`, e);
    throw e;
  }
}

function checkReply(reply: unknown): { rows: unknown[] } {
  const rows: unknown = (reply as { rows?: unknown } | null | undefined)?.rows;
  if (Array.isArray(rows)) return { rows };
  throw refusal("tx.query(text, params) must return a promise of { rows: [...] }");
}

function refusal(message: string, cause?: unknown): SluiceError {
  return new SluiceError("invalid_option", `${message}; "sluice/tx" has adapters for other libraries`, {
    details: { option: "tx" },
    ...(cause === undefined ? {} : { cause }),
  });
}
