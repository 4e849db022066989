import { SluiceError } from "../core/error.js";

/** Refuses what would run our statement, but not in a transaction of the caller's. */
export function refuseTx(message: string, cause?: unknown): never {
  throw new SluiceError("invalid_option", message, { cause, details: { option: "tx" } });
}

interface DriverError {
  readonly message?: unknown;
  readonly code?: unknown;
  readonly constraint?: unknown;
  readonly constraint_name?: unknown;
}

/**
 * A driver's error in the shape that pg gives it, because the store reads our codes from there. postgres.js
 * has another name for the one field that tells a refusal from the next.
 */
export function asPgError(e: unknown): unknown {
  const { message, code, constraint, constraint_name } = (e ?? {}) as DriverError;
  if (constraint !== undefined || constraint_name === undefined) return e;
  return pgError(String(message), { code, constraint: constraint_name, cause: e });
}

/** An error with the fields that the store reads from pg's own. */
export function pgError(
  message: string,
  fields: { readonly code: unknown; readonly constraint?: unknown; readonly cause: unknown },
): Error {
  const { code, constraint, cause } = fields;
  return Object.assign(new Error(message, { cause }), { code, constraint });
}
