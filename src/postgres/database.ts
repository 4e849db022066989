import { createHash } from "node:crypto";
import pg from "pg";
import { SluiceError } from "../core/error.js";
import { checkSchemaName } from "../core/name.js";
import type { Queryable } from "../core/ports.js";
import { fromDriver } from "./errors.js";
import { endPool, openPool } from "./part.js";
import { inSchema, type AnyStatement, type Statement } from "./statement.js";

/** How to reach the database. */
interface DatabaseOptions {
  readonly url?: string | undefined;
  /** A pool of the caller's, used for enqueue and queries. close() leaves it open. */
  readonly pool?: pg.Pool | undefined;
  readonly schema?: string | undefined;
  /** Connections for enqueue and queries. */
  readonly apiConnections?: number | undefined;
  /** false: no named statements, as a pooler in transaction mode requires. */
  readonly prepare?: boolean | undefined;
}

// Work must resume within 10 s of the database's return. A connection attempt that began before the return, and the
// pause after it, must be over by then.
const CONNECT_TIMEOUT_MS = 5_000;
const KEEP_ALIVE_MS = 10_000;
// Without this, a caller would wait forever on a connection whose peer has gone.
const API_PATIENCE = { query_timeout: 30_000 };

/**
 * Access to one schema of one database. Enqueue, queries and the dashboard share `api`; workers open connections of
 * their own. Neither side can use up the other's connections.
 */
export class Database {
  readonly schema: string;
  /** @internal */
  readonly api: pg.Pool;
  /**
   * @internal For statements that must not wait for `api`: every connection of a caller's pool may be in a transaction
   * that waits for them.
   */
  readonly aside: pg.Pool;
  readonly #config: pg.ClientConfig;
  readonly #ownsPool: boolean;
  /** Each function rejects a call that waits for a connection of the caller's pool. */
  readonly #waiting = new Set<() => void>();
  /** @internal Whether statements are named; false behind a pooler in transaction mode. */
  readonly prepared: boolean;
  #closed = false;
  readonly #texts = new Map<string, string>();
  readonly #prefix: string;

  /** @internal */
  constructor(options: DatabaseOptions) {
    this.schema = checkSchemaName(options.schema ?? "sluice");
    this.#prefix = this.schema.length > 32 ? md5(this.schema) : this.schema;
    this.prepared = options.prepare ?? true;
    this.#config = clientConfig(options);
    this.#ownsPool = options.pool === undefined;
    const max = options.apiConnections ?? 7;
    this.api = options.pool ?? openPool({ ...this.#config, max, ...API_PATIENCE });
    this.aside = this.#ownsPool ? this.api : openPool({ ...this.#config, max: 1, ...API_PATIENCE });
  }

  /** Runs a statement on `on`, or else on the pool for enqueue and queries. */
  async run<Row>(s: Statement<Row>, values: unknown[], on?: Queryable): Promise<Row[]> {
    try {
      const text = this.text(s);
      if (on !== undefined) return (await on.query(text, values)).rows as Row[];
      return (await this.#query(this.named(s, values))).rows as Row[];
    } catch (e) {
      throw fromDriver(e);
    }
  }

  /** @internal A connection for enqueue and queries. Rejects if close() comes first. */
  lend(): Promise<pg.PoolClient> {
    // guard: nothing is asked after the close -> test/client/close.test.ts: "close() ends waits for a result on the caller's pool"
    if (/* guard:closed */ this.#closed /* end */) return Promise.reject(new Error("closed"));
    const lent = this.api.connect();
    // Ending our own pool rejects its waiters. The caller's pool stays open, and its waiters would keep waiting.
    if (this.#ownsPool) return lent;
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        reject(new Error("closed while waiting for a connection"));
        void lent.then((client) => client.release()).catch(() => {});
      };
      this.#waiting.add(giveUp);
      const served = (): void => void this.#waiting.delete(giveUp);
      lent.finally(served).then(resolve, reject);
    });
  }

  /** A query that still waits for a connection of the caller's pool at close() is never sent. */
  async #query(query: pg.QueryConfig): Promise<pg.QueryResult> {
    if (this.#ownsPool) return this.api.query(query);
    const client = await this.lend();
    let broken: Error | undefined;
    // A connection that breaks also emits an error event. Without a listener, that event ends the process.
    const hear = (e: Error): void => void (broken = e);
    client.on("error", hear);
    try {
      return await client.query(query);
    } catch (e) {
      broken ??= e as Error;
      throw e;
    } finally {
      client.off("error", hear);
      client.release(broken);
    }
  }

  /** Returns the only row of a statement that always returns one. */
  async one<Row>(s: Statement<Row>, values: unknown[], on?: Queryable): Promise<Row> {
    const [row] = await this.run(s, values, on);
    if (row === undefined) throw new SluiceError("task_not_found", `${s.name} returned no row`);
    return row;
  }

  text(s: AnyStatement): string {
    let text = this.#texts.get(s.name);
    if (text === undefined) this.#texts.set(s.name, (text = inSchema(s.text, this.schema)));
    return text;
  }

  /** @internal A named query, so that the server plans it once per connection. */
  named(s: AnyStatement, values: unknown[]): pg.QueryConfig {
    const text = this.text(s);
    return this.prepared ? { name: `${this.#prefix}.${s.name}`, text, values } : { text, values };
  }

  /** @internal A connection outside every pool. Statements are pipelined: none waits for the one before it. */
  client(url?: string): pg.Client {
    const config = { ...this.#config, pipeline: true };
    return new pg.Client(url === undefined ? config : { ...config, connectionString: url });
  }

  /** @internal A pool outside `api`, for the transactions of handlers. */
  pool(max: number): pg.Pool {
    return openPool({ ...this.#config, max });
  }

  /** @internal Maximum number of connections for enqueue and queries. */
  get apiConnections(): number {
    return this.api.options.max;
  }

  /** @internal Number of open connections for enqueue and queries. */
  get apiOpen(): number {
    const aside = this.#ownsPool ? 0 : this.aside.totalCount;
    return this.api.totalCount + aside;
  }

  /** @internal Once closed, no failure is worth a retry. */
  get closed(): boolean {
    return this.#closed;
  }

  async close(): Promise<void> {
    this.#closed = true;
    // The caller's own pool stays open.
    // guard: closing answers waiters of the caller's pool -> test/client/close.test.ts: "close() rejects calls that wait for a connection of the caller's pool, and never sends them"
    /* guard:waiters */ for (const giveUp of this.#waiting) giveUp(); /* end */
    this.#waiting.clear();
    await endPool(this.aside);
  }
}

/** PostgreSQL distinguishes named statements by their first 63 bytes, and a long schema name leaves too few of them. */
function md5(text: string): string {
  return createHash("md5").update(text).digest("hex");
}

function clientConfig(options: DatabaseOptions): pg.ClientConfig {
  const common = {
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    // Detects a dead peer about 20 s after its last packet, instead of after two hours.
    keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
    // Names the owner of these connections in pg_stat_activity, unless the url or PGAPPNAME does. Behind a pooler in
    // transaction mode, the name would stick to connections that others use.
    ...(options.prepare === false ? {} : { fallback_application_name: "sluice" }),
  };
  if (options.url !== undefined) return { ...common, connectionString: options.url };
  // The pool makes its password non-enumerable, so copy it by name.
  if (options.pool !== undefined)
    return { ...options.pool.options, password: options.pool.options.password, ...common };
  throw new SluiceError(
    "missing_url",
    "no database is set: pass url or pool, set DATABASE_URL, or pass embedded: true",
  );
}
