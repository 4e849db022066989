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
// A prepared statement that does not exist, or exists already: it was made on another connection.
const NOT_PREPARED = new Set(["26000", "42P05"]);
const READ_ONLY = "25006";
// Disk full, out of memory.
const SHORTAGE = new Set(["53100", "53200"]);
// 53300: too many connections.
const UNAVAILABLE = new Set(["53300", READ_ONLY, ...SHORTAGE]);
// What node's sockets and resolver say of a connection that is gone, or never was.
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
// The driver's own words for the same; they carry no code.
const DRIVER =
  /^(connection terminated|client (was closed|has encountered)|timeout (expired|exceeded)|query read timeout)/i;
// Cannot be serialised, deadlock, lock timeout, cancelled or statement timeout.
const BUSY = new Set(["40001", "40P01", "55P03", "57014"]);

/**
 * Errors of the database in our words. What our functions refuse carries its code in the constraint
 * field; a lost connection or a server that cannot serve becomes `database_unavailable`. Anything else,
 * such as what a user's code threw, stays what it is.
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
 * The same for what the driver itself rejected a statement with. Without a SQLSTATE the server did not answer, whatever
 * the driver calls that: the reply counts as lost.
 */
export function fromDriver(e: unknown): unknown {
  const told = toSluiceError(e);
  if (told instanceof SluiceError || sqlstate(told) !== null) return told;
  return unavailable(`the database is not available: ${describeError(e).message}`, e);
}

/** With the server's own code, if it gave one: a wrong password (28P01) is no outage. */
export function unavailable(message: string, cause: unknown, more: object = {}): SluiceError {
  const state = sqlstate(cause);
  const details = { ...more, ...(state === null ? {} : { sqlstate: state }) };
  const told = Object.keys(details).length === 0 ? {} : { details };
  return new SluiceError("database_unavailable", message, { cause, ...told });
}

/** The message is what every library passes on, so it carries the id too. */
function refusal(code: ErrorCode, text: string, cause: unknown): SluiceError {
  const [, id] = code === "idempotency_conflict" ? (/ by (?:task|run) (\d+)$/.exec(text) ?? []) : [];
  return new SluiceError(code, text, { cause, ...(id === undefined ? {} : { details: { id } }) });
}

/** Our code and words for what a server, or a pooler before it, tells by its own. */
function inOurWords(code: unknown): readonly [ErrorCode, string] | null {
  if (typeof code !== "string") return null;
  if (MISSING.has(code)) return ["schema_missing", "the schema is missing or incomplete"];
  if (BUSY.has(code)) return ["database_busy", "the database was busy, try again"];
  if (code === NOT_PERMITTED) return ["not_permitted", "the database role may not do this"];
  if (NOT_PREPARED.has(code))
    return [
      "prepare_unsupported",
      "named statements do not work here, as behind a pooler in transaction mode: connect with prepare: false",
    ];
  return null;
}

/**
 * Logs trouble with the database. One that cannot be reached shows itself in many places at once: all
 * of them use one message, and a logger that lets through one line a second per message tells it once.
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
 * Whether the connection went away with a statement under way, so that nobody knows if it committed.
 * With any other error of the server it did not, and one of another origin says nothing about it.
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
 * Whether nobody knows if a statement of ours committed: its reply was lost, or could not be read. For errors of our own
 * statements only: what the server refused has a SQLSTATE or a code of ours.
 */
export function isUnanswered(e: unknown): boolean {
  // guard: a reply that cannot be read is a lost reply -> test/worker/claim.test.ts: "a claim whose reply cannot be read puts its session in doubt"
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
 * Whether the server takes no writes on this connection. After a failover another one may take them,
 * while a session that began like that can stay like that: it is not worth keeping.
 */
export function isReadOnly(e: unknown): boolean {
  return sqlstate(e instanceof SluiceError ? e.cause : e) === READ_ONLY;
}

/**
 * Whether the database is away: it cannot be reached, or says that it serves nobody now. Not 53400, by which it
 * refuses one statement for what that needs (temp_file_limit).
 */
export function isOutage(e: unknown): boolean {
  if (isSluiceError(e)) return e.code === "database_unavailable";
  const code = sqlstate(e);
  return code !== null && /^(08|53|57P)/.test(code) && code !== "53400";
}

/**
 * The same for an error on a connection that may have broken. What has no SQLSTATE may be a mistake of who sent the
 * statement; and a server that ended the connection for its transaction's sake (25P03, idle for too long) is there.
 */
export function isOutageOf(e: unknown, broken: Error | undefined): boolean {
  if (isOutage(e)) return true;
  if (broken === undefined || sqlstate(e) !== null) return false;
  return sqlstate(broken) === null || isOutage(broken);
}

/**
 * Whether the server had no disk or memory left for a statement. It may be that statement which needs too much: who sent
 * it is to blame, while a statement of ours needs little.
 */
export function isShortage(e: unknown): boolean {
  return SHORTAGE.has(sqlstate(e) ?? "");
}

/** The server's code for an error, if it comes from the server. */
export function sqlstate(e: unknown): string | null {
  const code = (e as PgError | null)?.code;
  // Not EPIPE and its like, which have five letters too: no class of SQLSTATE begins with an E.
  return typeof code === "string" && /^(?!E)[0-9A-Z]{5}$/.test(code) ? code : null;
}
