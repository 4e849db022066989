import { SluiceError, type ErrorCode } from "../core/error.js";

interface PgError {
  readonly code?: unknown;
  readonly constraint?: unknown;
  readonly message?: unknown;
}

const REFUSED = "SLUIC";
// Undefined schema, table or function: the migrations have not run.
const MISSING = new Set(["3F000", "42P01", "42883"]);
// Shutdown and crash of the server, its start-up, too many connections, read-only, disk full.
const UNAVAILABLE = new Set(["57P01", "57P02", "57P03", "53300", "25006", "53100", "53200"]);

/**
 * Errors of the database in our words. What our functions refuse carries its code in the constraint
 * field; a lost connection or a server that cannot serve becomes `database_unavailable`.
 */
export function toSluiceError(e: unknown): unknown {
  if (e instanceof SluiceError || typeof e !== "object" || e === null) return e;
  const { code, constraint, message } = e as PgError;
  const text = typeof message === "string" ? message : "unknown error";
  if (code === REFUSED) return new SluiceError(constraint as ErrorCode, text, { cause: e });
  if (typeof code === "string" && MISSING.has(code)) {
    return new SluiceError("schema_missing", `the schema is missing or incomplete: ${text}`, {
      cause: e,
    });
  }
  if (isUnavailable(e)) {
    return new SluiceError("database_unavailable", `the database is not available: ${text}`, {
      cause: e,
    });
  }
  return e;
}

/** Whether the same statement may succeed later, on this or another connection. */
export function isUnavailable(e: unknown): boolean {
  if (e instanceof SluiceError) return e.code === "database_unavailable";
  if (typeof e !== "object" || e === null) return false;
  const { code } = e as PgError;
  // A driver's network error has no SQLSTATE: ECONNRESET, "Connection terminated", a timeout.
  if (typeof code !== "string" || !/^[0-9A-Z]{5}$/.test(code)) return true;
  return code.startsWith("08") || code.startsWith("57P") || UNAVAILABLE.has(code);
}
