import { resolveApiConnections } from "../core/config.js";
import { SluiceError } from "../core/error.js";
import { checkSchemaName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import type { Logger, Queryable } from "../core/ports.js";
import { quote } from "../core/quote.js";

/** How long history is kept, per outcome; 0 deletes at once. */
export interface HistoryOptions {
  /** Default one day. */
  readonly succeededMs?: number;
  /** Default seven days. */
  readonly failedMs?: number;
  /** Default seven days. */
  readonly cancelledMs?: number;
}

/** A pool of the `pg` package, by what is needed of it: nobody has to install its types. */
export interface PoolLike extends Queryable {
  /** How the pool connects; workers and the listener do the same. */
  readonly options: object;
}

/** How a client connects. One of url, pool or the environment's DATABASE_URL is needed. */
export interface ClientOptions {
  readonly url?: string;
  /** A pool of yours for enqueue and queries; it is left open by close(). Workers open their own connections. */
  readonly pool?: PoolLike;
  readonly schema?: string;
  /** Runs missing migrations; default true. */
  readonly migrate?: boolean;
  /** Listens for wake-ups on a connection of its own; default true. Without it polling does all. */
  readonly listen?: boolean;
  /** Where to listen, if url leads to a pooler that cannot. */
  readonly listenUrl?: string;
  /** false: no named statements, for a pooler in transaction mode. */
  readonly prepare?: boolean;
  /** Default: warnings and errors to standard error, at most one line a second about the same trouble. */
  readonly logger?: Logger;
  readonly history?: HistoryOptions;
  /** The largest input, default 1 MiB. */
  readonly payloadBytesMax?: number;
  /** The largest result; a larger one is stored truncated. Default 1 MiB. */
  readonly resultBytesMax?: number;
  /** How long an idempotency key is remembered, default one day. */
  readonly idempotencyMs?: number;
  /** Connections for enqueue and queries; default from the environment's API_BUFFER, else 7. */
  readonly apiConnections?: number;
}

/** How to connect. One of url, pool, embedded or the environment's DATABASE_URL is needed. */
export interface ConnectOptions extends ClientOptions {
  /** Starts a PostgreSQL of its own, for development and tests. */
  readonly embedded?: boolean;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** What connect's options come to: checked, and with what was left out filled in. */
export interface Settings {
  readonly url: string | undefined;
  readonly schema: string;
  readonly history: Required<HistoryOptions>;
  readonly payloadBytesMax: number;
  readonly resultBytesMax: number;
  readonly idempotencyMs: number;
  readonly apiConnections: number;
}

const OPTIONS = [
  "url",
  "pool",
  "embedded",
  "schema",
  "migrate",
  "listen",
  "listenUrl",
  "prepare",
  "logger",
  "history",
  "payloadBytesMax",
  "resultBytesMax",
  "idempotencyMs",
  "apiConnections",
];
const DAY_MS = 24 * 3_600_000;
const AGE_RANGE = { min: 0, max: 3650 * DAY_MS };
const BYTES_RANGE = { min: 1, max: 64 * 1024 * 1024 };
const BYTES = 1024 * 1024;

/** Checks every option before anything is opened that would have to be closed again. */
export function settingsOf(options: ConnectOptions, env: Environment): Settings {
  checkOptions("connect", options, OPTIONS);
  checkPool(options.pool);
  checkLogger(options.logger);
  const bytes = (name: "payloadBytesMax" | "resultBytesMax"): number =>
    checkInteger(name, options[name] ?? BYTES, BYTES_RANGE);
  checkUrl("listenUrl", options.listenUrl);
  return {
    url: urlOf(options, env),
    schema: checkSchemaName(options.schema ?? "sluice"),
    history: historyOf(options.history ?? {}),
    payloadBytesMax: bytes("payloadBytesMax"),
    resultBytesMax: bytes("resultBytesMax"),
    idempotencyMs: checkInteger("idempotencyMs", options.idempotencyMs ?? DAY_MS, AGE_RANGE),
    apiConnections: resolveApiConnections(options.apiConnections, env),
  };
}

function historyOf(history: HistoryOptions): Settings["history"] {
  const names = ["succeededMs", "failedMs", "cancelledMs"] as const;
  checkOptions("history", history, names);
  const age = (name: (typeof names)[number], defaultMs: number): number =>
    checkInteger(`history.${name}`, history[name] ?? defaultMs, AGE_RANGE);
  return {
    succeededMs: age("succeededMs", DAY_MS),
    failedMs: age("failedMs", 7 * DAY_MS),
    cancelledMs: age("cancelledMs", 7 * DAY_MS),
  };
}

function urlOf({ url, pool, embedded }: ConnectOptions, env: Environment): string | undefined {
  if (embedded === true) {
    if (url === undefined && pool === undefined) return undefined;
    throw new SluiceError("invalid_option", "embedded is a database of its own: no url or pool");
  }
  const found = url ?? (pool === undefined ? env["DATABASE_URL"] : undefined);
  // An empty variable is how many a shell says "not set"; the driver would take it for localhost.
  if (found === undefined || found === "") {
    if (pool !== undefined) return undefined;
    throw new SluiceError(
      "missing_url",
      "Sluice needs a database: pass url or pool, set DATABASE_URL, or ask for embedded: true",
    );
  }
  return checkUrl(url === undefined ? "DATABASE_URL" : "url", found);
}

/** Anything else would look like a database that is gone, or fail later and far from here. */
function checkPool(pool: unknown): void {
  if (pool === undefined) return;
  const { query, options } = (pool ?? {}) as Partial<PoolLike>;
  if (typeof query === "function" && typeof options === "object" && options !== null) return;
  throw new SluiceError(
    "invalid_option",
    `pool must be a Pool of the pg package, with query() and options, not ${quote(pool)}`,
    { details: { option: "pool" } },
  );
}

/** Or it would break at the first line that somebody needs. */
function checkLogger(logger: unknown): void {
  if (logger === undefined) return;
  const levels = ["debug", "info", "warn", "error"] as const;
  const given = (logger ?? {}) as Partial<Logger>;
  const missing = levels.filter((level) => typeof given[level] !== "function");
  if (missing.length === 0) return;
  throw new SluiceError(
    "invalid_option",
    `logger must have the functions debug, info, warn and error; it lacks ${missing.join(", ")}`,
    { details: { option: "logger" } },
  );
}

/** The driver takes any text for an address and then looks for a host named "base". */
function checkUrl(option: string, url: unknown): string | undefined {
  if (
    url === undefined ||
    (typeof url === "string" && /^(postgres(ql)?:\/\/|socket:|\/)/.test(url))
  )
    return url;
  // Not the text itself: it may hold a password.
  throw new SluiceError(
    "invalid_option",
    `${option} must be text that begins with postgres:// or postgresql://${typeof url === "string" ? "" : `, not ${quote(url)}`}`,
    { details: { option } },
  );
}
