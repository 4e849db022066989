import { isSluiceError, SluiceError } from "../core/error.js";
import type { Limit, TotalLimit } from "../core/limit.js";
import { quote } from "../core/quote.js";
import type { TaskTerms } from "../core/terms.js";
import type { Database } from "../postgres/database.js";
import { readLimit } from "../postgres/limits.js";

/**
 * Returns the error for an enqueue that the database refused because a key is missing. The client has checked the keys
 * of all limits that are per key in the code, so a limit without a key in the code must be per key in the database:
 * one name, two shapes.
 */
export async function shapeError(
  db: Database,
  { type }: Pick<TaskTerms, "type">,
  limits: readonly Limit[],
  cause: unknown,
): Promise<unknown> {
  if (!isSluiceError(cause, "key_missing")) return cause;
  const totals = limits.filter((one): one is TotalLimit => one.perKey === undefined);
  const found = await Promise.all(totals.map((one) => isPerKey(db, one)));
  const [limit] = totals.filter((_, i) => found[i]);
  if (limit === undefined) return cause;
  return new SluiceError(
    "limit_shape",
    `task ${quote(type)} uses limit ${quote(limit.name)} without a key, but the database has it per key: ` +
      `use one shape in all code, or give one of the two another name`,
    { cause, details: { limit: limit.name, type } },
  );
}

/** A role that may not read limits cannot tell; then the limit counts as the cause. */
async function isPerKey(db: Database, { name }: TotalLimit): Promise<boolean> {
  try {
    return (await readLimit(db, name))?.perKey !== undefined;
  } catch (e) {
    return isSluiceError(e, "not_permitted");
  }
}
