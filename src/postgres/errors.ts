import { SluiceError, isSluiceError, type ErrorCode } from "../core/error.js";
import { describeError } from "../core/json.js";
import type { Logger } from "../core/ports.js";

interface PgError {
  readonly code?: unknown;
  readonly constraint?: unknown;
  readonly message?: unknown;
}

const REFUSED = "SLUIC";
// Undefined schema, table or function: the migrations have not run.
const MISSING = new Set(["3F000", "42P01", "42883"]);
const NOT_PERMITTED = "42501";
// A prepared statement that does not exist, or already exists: it was prepared on another connection.
const NOT_PREPARED = new Set(["26000", "42P05"]);
const READ_ONLY = "25006";
// Disk full, out of memory.
const SHORTAGE = new Set(["53100", "53200"]);
// 53300: too many connections.
const UNAVAILABLE = new Set(["53300", READ_ONLY, ...SHORTAGE]);
// Error codes of Node's sockets and resolver for a connection that was lost or never opened.
const NETWORK = new Set([
  "EADDRNOTAVAIL",
  "EAI_AGAIN",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETRESET",
  "ENETUNREACH",
  "ENOTCONN",
  "ENOTFOUND",
  "EPIPE",
  "ERR_STREAM_DESTROYED",
  "ETIMEDOUT",
]);
// The driver's own messages for the same errors; they carry no code.
const DRIVER =
  /^(connection terminated|client (was closed|has encountered)|timeout (expired|exceeded)|query read timeout)/i;
// Serialization failure, deadlock, lock timeout, query cancelled or statement timeout.
const BUSY = new Set(["40001", "40P01", "55P03", "57014"]);

/**
 * Converts errors of the database into ours. Refusals by our functions carry their code in the constraint field. A lost
 * connection or a server that cannot serve becomes `database_unavailable`. Any other error, such as one thrown by user
 * code, is returned unchanged.
 */
export function toSluiceError(e: unknown): unknown {
  if (e instanceof SluiceError || typeof e !== "object" || e === null) return e;
  const { code, constraint, message } = e as PgError;
  const text = typeof message === "string" ? message : "unknown error";
  if (code === REFUSED) return refusal(constraint as ErrorCode, text, e);
  const [ours, words] = inOurWords(code) ?? [];
  if (ours !== undefined) return new SluiceError(ours, `${words}: ${text}`, { cause: e });
  if (isUnavailable(e)) {
    return unavailable(`the database is not available: ${text}`, e);
  }
  return e;
}

/**
 * The same for an error with which the driver rejected a statement. Without a SQLSTATE the server did not answer,
 * whatever the driver calls it: the reply counts as lost.
 */
export function fromDriver(e: unknown): unknown {
  const told = toSluiceError(e);
  if (told instanceof SluiceError || sqlstate(told) !== null) return told;
  return unavailable(`the database is not available: ${describeError(e).message}`, e);
}

/** Includes the server's own code, if there is one: a wrong password (28P01) is not an outage. */
export function unavailable(message: string, cause: unknown, more: object = {}): SluiceError {
  const state = sqlstate(cause);
  const details = { ...more, ...(state === null ? {} : { sqlstate: state }) };
  const told = Object.keys(details).length === 0 ? {} : { details };
  return new SluiceError("database_unavailable", message, { cause, ...told });
}

/** The message also carries the id, because every library passes the message on. */
function refusal(code: ErrorCode, text: string, cause: unknown): SluiceError {
  const [, id] = code === "idempotency_conflict" ? (/ by (?:task|run) (\d+)$/.exec(text) ?? []) : [];
  return new SluiceError(code, text, { cause, ...(id === undefined ? {} : { details: { id } }) });
}

/** Our code and message for an error code of the server, or of a pooler in front of it. */
function inOurWords(code: unknown): readonly [ErrorCode, string] | null {
  if (typeof code !== "string") return null;
  if (MISSING.has(code)) return ["schema_missing", "the schema is missing or incomplete"];
  if (BUSY.has(code)) return ["database_busy", "the database was busy: try again"];
  if (code === NOT_PERMITTED) return ["not_permitted", "the database role has no permission for this"];
  if (NOT_PREPARED.has(code))
    return [
      "prepare_unsupported",
      "named statements do not work on this connection, probably because of a pooler in transaction mode: " +
        "connect with prepare: false",
    ];
  return null;
}

/**
 * Logs trouble with the database. An unreachable database shows up in many places at once. All of them log the same
 * message, so a logger that is limited to one line a second per message logs it once.
 */
export function tellTrouble(log: Logger, trouble: string, e: unknown): void {
  const told = toSluiceError(e);
  const gone = isSluiceError(told, "database_unavailable");
  if (gone) log.warn("the database is not available", { trouble, error: told.message });
  else log.warn(trouble, { error: String(e) });
}

/** Whether the same statement may succeed later, on this or another connection. */
function isUnavailable(e: unknown): boolean {
  const code = sqlstate(e);
  return isReplyLost(e) || (code !== null && UNAVAILABLE.has(code));
}

/**
 * Whether the connection broke while a statement was running, so that its commit is unknown. After any other error of
 * the server the statement has not committed, and an error of another origin says nothing about it.
 */
export function isReplyLost(e: unknown): boolean {
  if (e instanceof SluiceError) {
    if (e.code !== "database_unavailable" || e.details?.["sent"] === false) return false;
    const state = sqlstate(e.cause);
    return state === null || isLostState(state);
  }
  const state = sqlstate(e);
  // guard: only errors of the driver are lost replies -> test/postgres/errors.test.ts: "an error that did not come from the driver is not a lost reply"
  return state === null ? /* guard:driver */ isNetworkError(e) /* end */ : isLostState(state);
}

/**
 * Whether it is unknown if a statement of ours committed: its reply was lost or could not be read. Only for errors of
 * our own statements: a refusal by the server has a SQLSTATE or a code of ours.
 */
export function isUnanswered(e: unknown): boolean {
  // guard: a reply that cannot be read is a lost reply -> test/worker/claim.test.ts: "a claim with an unreadable reply makes its session release unknown claims"
  const isUnreadable = !isSluiceError(e) && sqlstate(e) === null;
  return isReplyLost(e) || /* guard:unreadable */ isUnreadable; /* end */
}

function isLostState(state: string): boolean {
  return state.startsWith("08") || state.startsWith("57P");
}

function isNetworkError(e: unknown): boolean {
  if (!(e instanceof Error)) return false;
  const { code } = e as PgError;
  return (typeof code === "string" && NETWORK.has(code)) || DRIVER.test(e.message);
}

/**
 * Whether the server accepts no writes on this connection. After a failover another connection may accept them, while a
 * session that began read-only can stay so: it is not worth keeping.
 */
export function isReadOnly(e: unknown): boolean {
  return sqlstate(e instanceof SluiceError ? e.cause : e) === READ_ONLY;
}

/**
 * Whether the database is unavailable: it cannot be reached, or reports that it serves nobody now. Excludes 53400,
 * which rejects a single statement for the resources it needs (temp_file_limit).
 */
export function isOutage(e: unknown): boolean {
  if (isSluiceError(e)) return e.code === "database_unavailable";
  const code = sqlstate(e);
  return code !== null && /^(08|53|57P)/.test(code) && code !== "53400";
}

/**
 * The same for an error on a connection that may have broken. An error without a SQLSTATE may be the sender's mistake.
 * A server that ended the connection because of its transaction (25P03, idle for too long) is available.
 */
export function isOutageOf(e: unknown, broken: Error | undefined): boolean {
  if (isOutage(e)) return true;
  if (broken === undefined || sqlstate(e) !== null) return false;
  return sqlstate(broken) === null || isOutage(broken);
}

/**
 * Whether the server had no disk space or memory left for a statement. That statement may itself need too much, in
 * which case its sender is to blame; statements of ours need little.
 */
export function isShortage(e: unknown): boolean {
  return SHORTAGE.has(sqlstate(e) ?? "");
}

/** The error's SQLSTATE, if the error comes from the server. */
export function sqlstate(e: unknown): string | null {
  const code = (e as PgError | null)?.code;
  // Excludes EPIPE and the like, which also have five letters: no SQLSTATE class begins with E.
  return typeof code === "string" && /^(?!E)[0-9A-Z]{5}$/.test(code) ? code : null;
}
