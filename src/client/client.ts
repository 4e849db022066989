import type pg from "pg";
import type { EnqueueArgs, EnqueueOptions } from "../core/enqueue.js";
import { SluiceError } from "../core/error.js";
import type { Limit } from "../core/limit.js";
import { checkName } from "../core/name.js";
import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import { oncePerSecond, silentLogger, type Logger } from "../core/ports.js";
import type { TaskState } from "../core/state.js";
import type { TaskTerms } from "../core/terms.js";
import { Limits } from "../limits/limits.js";
import { cancel, retry, unblock } from "../postgres/cancel.js";
import { Database } from "../postgres/database.js";
import { counts, inspect } from "../postgres/inspect.js";
import { Listener } from "../postgres/listen.js";
import { checkVersion, migrate } from "../postgres/migrate.js";
import { pauseQueue } from "../postgres/pause.js";
import { Declarations } from "./declarations.js";
import { ended } from "./ended.js";
import { enqueueOne, type Desk } from "./enqueue.js";
import { TaskHandle, type TaskDesk } from "./handle.js";
import { enqueueMany, type EnqueuedMany, type EnqueueManyOptions } from "./many.js";

/** How long history is kept, per outcome; 0 deletes at once. */
export interface HistoryOptions {
  /** Default one day. */
  readonly succeededMs?: number;
  /** Default seven days. */
  readonly failedMs?: number;
  /** Default seven days. */
  readonly cancelledMs?: number;
}

/** How to connect. One of url, pool, embedded or the environment's DATABASE_URL is needed. */
export interface ConnectOptions {
  readonly url?: string;
  /** A pool of yours for enqueue and queries; it is left open by close(). Workers open their own connections. */
  readonly pool?: pg.Pool;
  /** Starts a PostgreSQL of its own, for development and tests. */
  readonly embedded?: boolean;
  readonly schema?: string;
  /** Runs missing migrations; default true. */
  readonly migrate?: boolean;
  /** Listens for wake-ups on a connection of its own; default true. Without it polling does all. */
  readonly listen?: boolean;
  /** Where to listen, if url leads to a pooler that cannot. */
  readonly listenUrl?: string;
  /** false: no named statements, for a pooler in transaction mode. */
  readonly prepare?: boolean;
  readonly logger?: Logger;
  readonly history?: HistoryOptions;
  /** The largest input, default 1 MiB. */
  readonly payloadBytesMax?: number;
  /** The largest result; a larger one is stored truncated. Default 1 MiB. */
  readonly resultBytesMax?: number;
  /** How long an idempotency key is remembered, default one day. */
  readonly idempotencyMs?: number;
  /** Connections for enqueue and queries, default 7. */
  readonly apiConnections?: number;
}

/** An open connection's parts, as `open` makes them. */
export interface Connection {
  readonly db: Database;
  readonly listener: Listener | null;
  readonly logger: Logger;
  readonly options: ConnectOptions;
  readonly stopEmbedded: (() => Promise<void>) | null;
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

/** Connects, brings the schema up to date and begins to listen. */
export async function open(options: ConnectOptions): Promise<Connection> {
  checkOptions("connect", options, OPTIONS);
  const embedded = options.embedded === true ? await startEmbedded() : null;
  const url =
    embedded?.url ??
    options.url ??
    (options.pool === undefined ? process.env["DATABASE_URL"] : undefined);
  const db = new Database({
    url,
    pool: options.pool,
    schema: options.schema,
    prepare: options.prepare,
    apiConnections: checkInteger("apiConnections", options.apiConnections ?? 7, {
      min: 1,
      max: 1000,
    }),
  });
  const logger = options.logger ?? silentLogger;
  try {
    await bringUpToDate(db, options.migrate ?? true);
    const listener =
      options.listen === false
        ? null
        : new Listener(db, { url: options.listenUrl, log: oncePerSecond(logger) });
    await listener?.start();
    return { db, listener, logger, options, stopEmbedded: embedded?.stop ?? null };
  } catch (e) {
    await db.close();
    await embedded?.stop();
    throw e;
  }
}

async function startEmbedded(): Promise<{ url: string; stop(): Promise<void> }> {
  // Loaded only when asked for: a producer in production never pays for it.
  const { startEmbedded: start } = await import("../embedded/index.js");
  const server = await start();
  return { url: server.url, stop: () => server.stop() };
}

async function bringUpToDate(db: Database, run: boolean): Promise<void> {
  const client = db.client();
  client.on("error", () => {});
  try {
    await client.connect();
  } catch (e) {
    throw new SluiceError("database_unavailable", `cannot connect: ${(e as Error).message}`, {
      cause: e,
    });
  }
  try {
    if (run) await migrate(client, { schema: db.schema });
    else await checkVersion(client, db.schema);
  } finally {
    await client.end();
  }
}

/** Enqueues tasks and looks after them. Has no worker in it, so a producer need not load one. */
export class Client {
  readonly limits: Limits;
  protected readonly connection: Connection;
  protected readonly desk: Desk;
  protected readonly declarations: Declarations;

  /** Use `connect`. */
  constructor(connection: Connection) {
    const { db, options } = connection;
    this.connection = connection;
    this.declarations = new Declarations(db);
    this.limits = new Limits(db, (limit) => this.declarations.limit(limit));
    this.desk = {
      db,
      declarations: this.declarations,
      payloadBytesMax: checkInteger(
        "payloadBytesMax",
        options.payloadBytesMax ?? 1024 * 1024,
        BYTES_RANGE,
      ),
      idempotencyMs: checkInteger("idempotencyMs", options.idempotencyMs ?? DAY_MS, AGE_RANGE),
    };
    this.history = {
      succeededMs: checkInteger(
        "history.succeededMs",
        options.history?.succeededMs ?? DAY_MS,
        AGE_RANGE,
      ),
      failedMs: checkInteger(
        "history.failedMs",
        options.history?.failedMs ?? 7 * DAY_MS,
        AGE_RANGE,
      ),
      cancelledMs: checkInteger(
        "history.cancelledMs",
        options.history?.cancelledMs ?? 7 * DAY_MS,
        AGE_RANGE,
      ),
    };
    this.resultBytesMax = checkInteger(
      "resultBytesMax",
      options.resultBytesMax ?? 1024 * 1024,
      BYTES_RANGE,
    );
  }

  protected readonly history: { succeededMs: number; failedMs: number; cancelledMs: number };
  protected readonly resultBytesMax: number;

  static async connect(options: ConnectOptions = {}): Promise<Client> {
    return new Client(await open(options));
  }

  /**
   * Enqueues one task. With `tx` it exists if and only if the caller's transaction commits, and that
   * transaction may stay open for minutes without blocking a worker.
   */
  async enqueue<Input, Output>(
    task: TaskTerms<Input, unknown, Output>,
    ...args: EnqueueArgs<Input>
  ): Promise<TaskHandle<Output>> {
    const [input, options = {}] = args as [unknown, EnqueueOptions?];
    const { id, existed } = await enqueueOne(
      this.desk,
      checkTerms(task) as TaskTerms<never>,
      input,
      options,
    );
    return new TaskHandle<Output>(this.#taskDesk, id, existed);
  }

  /** Enqueues a list or stream of any length in bounded memory: atomic within `tx`, else per chunk of 1,000. */
  async enqueueMany<Input>(
    task: TaskTerms<Input>,
    inputs: Iterable<NoInfer<Input>> | AsyncIterable<NoInfer<Input>>,
    options: EnqueueManyOptions<NoInfer<Input>> = {},
  ): Promise<EnqueuedMany> {
    return enqueueMany(this.desk, checkTerms(task) as TaskTerms<never>, inputs, options);
  }

  /** A handle on a task that was enqueued elsewhere. */
  task<Output = unknown>(id: string): TaskHandle<Output> {
    return new TaskHandle<Output>(this.#taskDesk, checkId(id));
  }

  /** Runs a failed or cancelled task again, from its first attempt and in its old place. False if it is neither. */
  retry(id: string): Promise<boolean> {
    return retry(this.connection.db, checkId(id));
  }

  /** Lets an order key that a failed task blocks go on without it. */
  unblock(id: string): Promise<boolean> {
    return unblock(this.connection.db, checkId(id));
  }

  /** Nothing is claimed from the queue any more, by any worker; what runs may finish. */
  pause(queue: string): Promise<void> {
    return pauseQueue(this.connection.db, checkName("queue", queue), true);
  }

  resume(queue: string): Promise<void> {
    return pauseQueue(this.connection.db, checkName("queue", queue), false);
  }

  /** Makes the numbers in these limits and tasks the declared ones, at a deploy. Overrides by limits.set stay. */
  sync(declared: readonly (Limit | TaskTerms<never>)[]): Promise<void> {
    return this.declarations.sync(declared);
  }

  /** How many tasks are in each state. */
  counts(): Promise<Record<TaskState, number>> {
    return counts(this.connection.db);
  }

  async close(): Promise<void> {
    const { listener, db, stopEmbedded } = this.connection;
    await listener?.close();
    await db.close();
    await stopEmbedded?.();
  }

  readonly #taskDesk: TaskDesk = {
    inspect: (id) => inspect(this.connection.db, id),
    cancel: async (id, reason, tx) => (await cancel(this.connection.db, [id], reason, tx))[0]!,
    ended: (id, timeoutMs) => ended(this.connection.db, this.connection.listener, id, timeoutMs),
  };
}

function checkTerms<T>(task: T): T {
  if (typeof (task as Partial<TaskTerms> | null)?.place === "function") return task;
  throw new SluiceError(
    "unknown_task",
    "the first argument must be a task made by task(name, options)",
  );
}

function checkId(id: unknown): string {
  if (typeof id === "string" && /^\d{1,18}$/.test(id)) return id;
  throw new SluiceError("task_not_found", "a task id is a string of digits");
}
