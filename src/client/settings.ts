import { resolveSection, resolveWithin, type Layers } from "../config/resolve.js";
import { namesOf, type Values } from "../config/table.js";
import { SluiceError } from "../core/error.js";
import { checkOptions } from "../core/option.js";
import type { Logger, Queryable } from "../core/ports.js";
import { quote } from "../core/quote.js";

/**
 * How long history is kept, per outcome. With 0 a success is not kept at all; what somebody awaits, what belongs to a
 * workflow, and what failed or was cancelled is kept for a minute at least.
 */
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

/**
 * How a client connects. One of url, pool or the environment's DATABASE_URL is needed. What is left out
 * comes from the environment, then from sluice.toml, then from the default.
 */
export interface ClientOptions {
  /** The config file; default: SLUICE_CONFIG, else sluice.toml in the working directory. false: none. */
  readonly config?: string | false;
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
  /** Connections for enqueue and queries, one of them to listen; default 7. */
  readonly apiConnections?: number;
  /** false: no spans and no stored trace context, also where an OpenTelemetry SDK is registered; default true. */
  readonly tracing?: boolean;
}

/** How to connect. One of url, pool, embedded or the environment's DATABASE_URL is needed. */
export interface ConnectOptions extends ClientOptions {
  /** Starts a PostgreSQL of its own, for development and tests. */
  readonly embedded?: boolean;
}

/** What connect's options come to: checked, and with what was left out filled in. */
export interface Settings extends Values<"client"> {
  readonly history: Values<"history">;
  /** Where it came from, for a worker's settings. */
  readonly layers: Layers;
}

const OPTIONS = [...namesOf("client"), "config", "pool", "embedded", "logger", "history"];

/** Checks every option before anything is opened that would have to be closed again. */
export function settingsOf(options: ConnectOptions, layers: Layers): Settings {
  checkOptions("connect", options, OPTIONS);
  checkPool(options.pool);
  checkLogger(options.logger);
  const { values } = resolveSection("client", options, foreign(options, layers));
  const history = resolveWithin("history", options.history, layers);
  return { ...values, url: urlOf(options, values.url), history, layers };
}

/** Who brings a database of his own has no use for an address that stands elsewhere, nor for its faults. */
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
    throw new SluiceError("invalid_option", "embedded is a database of its own: no url or pool");
  }
  // The driver would take an empty text for localhost.
  if (found !== undefined && found !== "") return found;
  if (pool !== undefined) return undefined;
  throw new SluiceError(
    "missing_url",
    "Sluice needs a database: pass url or pool, set DATABASE_URL, or ask for embedded: true",
  );
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
