import { SluiceError } from "../core/error.js";

/** Rejects an object that would run our statement outside a transaction of the caller's. */
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
 * Converts a driver's error to the shape of pg's, from which the store reads our codes. postgres.js uses another name
 * for the one field that distinguishes our refusals.
 */
export function asPgError(e: unknown): unknown {
  const { message, code, constraint, constraint_name } = (e ?? {}) as DriverError;
  if (constraint !== undefined || constraint_name === undefined) return e;
  return pgError(String(message), { code, constraint: constraint_name, cause: e });
}

/** Creates an error with the fields that the store reads from pg's errors. */
export function pgError(
  message: string,
  fields: { readonly code: unknown; readonly constraint?: unknown; readonly cause: unknown },
): Error {
  const { code, constraint, cause } = fields;
  return Object.assign(new Error(message, { cause }), { code, constraint });
}
