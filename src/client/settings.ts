import { resolveSection, resolveWithin, type Layers } from "../config/resolve.js";
import { namesOf, type Values } from "../config/table.js";
import { SluiceError } from "../core/error.js";
import { checkOptions } from "../core/option.js";
import type { Logger, Queryable } from "../core/ports.js";
import { quote } from "../core/quote.js";
import { redactOf, type Redact, type Redaction } from "../core/redact.js";
import { checkLogger, type PinoLogger } from "./logger.js";

/**
 * How long history is kept, per outcome. With 0, a success is not kept at all. Awaited tasks, tasks of a workflow, and
 * failed or cancelled tasks are kept for at least a minute.
 */
export interface HistoryOptions {
  /** Default: one day. */
  readonly succeededMs?: number;
  /** Default: seven days. */
  readonly failedMs?: number;
  /** Default: seven days. */
  readonly cancelledMs?: number;
}

/** A pool of the `pg` package, reduced to the members in use: its types need not be installed. */
export interface PoolLike extends Queryable {
  /** The pool's connection options; workers and the listener connect with the same ones. */
  readonly options: object;
}

/**
 * How a client connects. Requires `url`, `pool` or the environment's DATABASE_URL. Omitted options come from the
 * environment, then from sluice.toml, then from the defaults.
 */
export interface ClientOptions {
  /** Path of the config file; false: none. Default: SLUICE_CONFIG, else sluice.toml in the working directory. */
  readonly config?: string | false;
  readonly url?: string;
  /** Your own pool for enqueue and queries; close() leaves it open. Workers open their own connections. */
  readonly pool?: PoolLike;
  readonly schema?: string;
  /** Runs missing migrations. Default true. */
  readonly migrate?: boolean;
  /** Listens for wake-ups on a separate connection. Default true. Without it, workers and waits only poll. */
  readonly listen?: boolean;
  /** The address to listen on, if `url` leads to a pooler that does not support LISTEN. */
  readonly listenUrl?: string;
  /** false: no named statements, for a pooler in transaction mode. */
  readonly prepare?: boolean;
  /**
   * Receives log lines: a Logger, `console`, or a logger of pino or winston. Default: warnings and errors to standard
   * error, at most one line per second about the same problem.
   */
  readonly logger?: Logger | PinoLogger;
  readonly history?: HistoryOptions;
  /** The maximum input size. Default 1 MiB. */
  readonly payloadBytesMax?: number;
  /** The maximum result size; a larger result is stored truncated. Default 1 MiB. */
  readonly resultBytesMax?: number;
  /** How long an idempotency key is remembered. Default: one day. */
  readonly idempotencyMs?: number;
  /** Connections for enqueue and queries, including one for listening. Default 7. */
  readonly apiConnections?: number;
  /** false: no spans and no stored trace context, even if an OpenTelemetry SDK is registered. Default true. */
  readonly tracing?: boolean;
  /**
   * What to hide in inputs that `handle.get()` and other calls for operators return: paths such as `"*.card"`, and
   * functions. Common names of secrets (password, token, apiKey ...) are always hidden; `false` hides nothing.
   */
  readonly redact?: readonly Redaction[] | false;
}

/** How to connect. Requires `url`, `pool`, `embedded` or the environment's DATABASE_URL. */
export interface ConnectOptions extends ClientOptions {
  /** Starts a PostgreSQL server of its own, for development and tests. */
  readonly embedded?: boolean;
}

/** The options of connect, checked and with defaults filled in. */
export interface Settings extends Values<"client"> {
  readonly history: Values<"history">;
  readonly redact: Redact;
  /** The configuration layers, also used for a worker's settings. */
  readonly layers: Layers;
}

const OPTIONS = [...namesOf("client"), "config", "pool", "embedded", "logger", "history", "redact"];

/** Checks every option before opening anything that would have to be closed again. */
export function settingsOf(options: ConnectOptions, layers: Layers): Settings {
  checkOptions("connect", options, OPTIONS);
  checkPool(options.pool);
  checkLogger(options.logger);
  const { values } = resolveSection("client", options, foreign(options, layers));
  const history = resolveWithin("history", options.history, layers);
  const redact = redactOf(options.redact);
  return { ...values, url: urlOf(options, values.url), history, redact, layers };
}

/** With `pool` or `embedded`, an address configured elsewhere is unused, and so are its errors. */
function foreign({ pool, embedded }: ConnectOptions, layers: Layers): Layers {
  if (pool === undefined && embedded !== true) return layers;
  const values = new Map(layers.file?.values);
  values.delete("client.url");
  return {
    env: { ...layers.env, DATABASE_URL: undefined },
    file: layers.file === null ? null : { path: layers.file.path, values },
  };
}

function urlOf({ url, pool, embedded }: ConnectOptions, found: string | undefined): string | undefined {
  if (embedded === true) {
    if (url === undefined && pool === undefined) return undefined;
    throw new SluiceError("invalid_option", "embedded starts its own database: pass no url and no pool");
  }
  // The driver would interpret an empty text as localhost.
  if (found !== undefined && found !== "") return found;
  if (pool !== undefined) return undefined;
  throw new SluiceError(
    "missing_url",
    "no database is set: pass url or pool, set DATABASE_URL, or pass embedded: true",
  );
}

/** Any other value would look like an unavailable database, or fail later and far from here. */
function checkPool(pool: unknown): void {
  if (pool === undefined) return;
  const { query, options } = (pool ?? {}) as Partial<PoolLike>;
  if (typeof query === "function" && typeof options === "object" && options !== null) return;
  throw new SluiceError(
    "invalid_option",
    `pool must be a Pool of the package pg, with query() and options, not ${quote(pool)}`,
    { details: { option: "pool" } },
  );
}
