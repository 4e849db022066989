import type pg from "pg";
import type { ConnectOptions } from "../client/settings.js";
import type { TaskContext } from "../core/context.js";
import { SluiceError } from "../core/error.js";
import { checkSchemaName } from "../core/name.js";
import { checkOptions } from "../core/option.js";
import { silentLogger } from "../core/ports.js";
import { quote } from "../core/quote.js";
import type { TaskTerms } from "../core/terms.js";
import { Connection } from "../postgres/connection.js";
import { taskFates } from "../postgres/inspect.js";
import { endPool } from "../postgres/part.js";
import { setClock } from "../postgres/rehearse.js";
import { copyTemplate, dropCopy } from "../postgres/template.js";
import type { PlaceCrew } from "../runs/place.js";
import type { Sluice } from "../sluice.js";
import type { ContextServices } from "../worker/context.js";
import { contextServices } from "../worker/context-services.js";
import { ProgressReporter } from "../worker/progress.js";
import { reportProgress, type ProgressReport } from "../postgres/progress.js";
import type { AnyHandler } from "../worker/execution.js";
import { StandingClock, type TestClock } from "./clock.js";
import { drain, type Drained, type DrainOptions } from "./drain.js";
import { enqueued, type EnqueuedOptions, type EnqueuedTask } from "./enqueued.js";
import { expectLike, type ExpectOptions } from "./expect.js";
import { Hand } from "./hand.js";
import type { Like } from "./like.js";
import { Rehearsal } from "./rehearsal.js";
import { serverUrl } from "./server.js";

/** Any handler. Its types matter only where it is declared. */
export interface TestHandler {
  readonly contract: Pick<TaskTerms, "type" | "queue">;
  run(input: never, ctx: TaskContext): unknown;
}

/** Creates handlers that need the test's Sluice, or the address of its database. */
export type MakeHandlers = (sluice: Sluice, url: string) => readonly TestHandler[] | Promise<readonly TestHandler[]>;

/** Options of testSluice(). All are optional. */
export interface TestOptions extends Pick<
  ConnectOptions,
  "schema" | "history" | "logger" | "listen" | "payloadBytesMax" | "resultBytesMax" | "idempotencyMs"
> {
  /**
   * The handlers that drain() runs, created by task(...).handle(fn). Pass a function for handlers that need the test's
   * Sluice or the address of its database: it is called once, before testSluice() returns.
   */
  readonly handlers?: readonly TestHandler[] | MakeHandlers;
  /** A server on which the kit may create databases. Default: DATABASE_URL, else a server that the kit starts. */
  readonly url?: string;
  /** Initial time of the test clock. Default: now. */
  readonly now?: Date;
  /** A config file. Default: none, even if there is a sluice.toml. */
  readonly config?: string | false;
}

const OPTIONS = [
  "handlers",
  "url",
  "now",
  "config",
  "schema",
  "history",
  "logger",
  "listen",
  "payloadBytesMax",
  "resultBytesMax",
  "idempotencyMs",
];
const REPLY_MS_MAX = 10_000;
const TRANSACTIONS_MAX = 4;

/** A Sluice on a database of its own, where the clock stands still and drain() runs the tasks. */
export class TestSluice {
  /** The Sluice to pass to the code under test. */
  readonly sluice: Sluice;
  /** Address of this test's database. */
  readonly url: string;
  readonly clock: TestClock;
  readonly #server: string;
  readonly #connection: Connection;
  readonly #pool: pg.Pool;
  readonly #handlers: ReadonlyMap<number, AnyHandler>;
  readonly #parts: Rehearsal["parts"];
  readonly #hand: Hand;
  #draining = false;
  #closing: Promise<void> | null = null;

  /** @internal Use testSluice(). */
  constructor(o: {
    readonly rehearsal: Rehearsal;
    readonly handlers: ReadonlyMap<number, AnyHandler>;
    readonly url: string;
    readonly server: string;
    readonly now: Date;
  }) {
    const { rehearsal, handlers } = o;
    this.sluice = rehearsal;
    this.url = o.url;
    this.#server = o.server;
    this.#handlers = handlers;
    this.#parts = rehearsal.parts;
    this.#connection = new Connection(this.#parts.db, REPLY_MS_MAX);
    this.#pool = this.#parts.db.pool(TRANSACTIONS_MAX);
    const clock = new StandingClock(o.now, (to) => this.#move(to));
    this.clock = clock;
    this.#hand = this.#assemble(clock);
  }

  /**
   * Runs tasks one at a time, by priority, then age, until nothing is runnable, including what these tasks enqueue.
   * Order, limits, retries and their delays work as in a real worker.
   */
  async drain(options: DrainOptions = {}): Promise<Drained> {
    if (this.#handlers.size === 0)
      throw new SluiceError("invalid_option", "drain needs handlers: pass them to testSluice");
    if (this.#draining) throw new SluiceError("invalid_option", "a drain is already running: await it first");
    this.#draining = true;
    try {
      const { db, log, settings } = this.#parts;
      const placing = this.#placing();
      const parts = { db, log, connection: this.#connection, hand: this.#hand, placing };
      const services = { ...parts, history: settings.history };
      return await drain({ ...services, handlers: this.#handlers }, options);
    } finally {
      this.#draining = false;
    }
  }

  /** Every task of a type, oldest first, in any state; with `tx`, as your transaction sees them. */
  enqueued<Input>(task: TaskTerms<Input>, options: EnqueuedOptions = {}): Promise<readonly EnqueuedTask<Input>[]> {
    return enqueued(this.#parts.db, task, options);
  }

  /**
   * Returns the tasks whose input matches `input`, which may be partial. Throws an AssertionError with the differences
   * if none matches.
   */
  async expectEnqueued<Input>(
    task: TaskTerms<Input>,
    input?: Like<NoInfer<Input>>,
    options: ExpectOptions = {},
  ): Promise<readonly EnqueuedTask<Input>[]> {
    const tasks = await enqueued(this.#parts.db, task, { tx: options.tx });
    return expectLike(task.type, tasks, input, options);
  }

  /** Stops workers, closes every connection and drops the database. A second call waits for the first. */
  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.sluice.close();
    await this.#connection.close();
    await endPool(this.#pool);
    await dropCopy(this.#server, this.url);
  }

  /** What a drain needs to create workflow tasks, where that requires code. */
  #placing(): PlaceCrew {
    const { db, services } = this.#parts;
    const terms = new Map([...this.#handlers].map(([stream, { contract }]) => [stream, contract]));
    return { db, declarations: services.declarations, pool: this.#pool, terms };
  }

  #assemble(clock: StandingClock): Hand {
    const { db, services, log, logger, settings, hooks } = this.#parts;
    const { resultBytesMax, history } = settings;
    const keepHistory = history.succeededMs > 0;
    const lending = { pool: this.#pool };
    const send = (reports: readonly ProgressReport[]): Promise<void> => reportProgress(db, reports);
    const progress = new ProgressReporter({ clock: clock.port, log, send });
    const parts = { services, lending, listener: null, logger, log, clock: clock.port, progress };
    const common = { ...parts, keepHistory, resultBytesMax };
    return new Hand({
      connection: this.#connection,
      handlers: this.#handlers,
      servicesOf: (onRecorded) => withoutHolds(contextServices({ ...common, onRecorded })),
      clock: clock.port,
      log,
      resultBytesMax,
      keepHistory,
      hooks,
      fates: (ids) => taskFates(db, ids),
    });
  }

  /**
   * Moves the clock. A worker that is executing counts as having sent its heartbeats meanwhile, and gets their replies.
   */
  async #move(to: Date): Promise<void> {
    await setClock(this.#connection, to, this.#hand.worker);
    await this.#hand.beat();
    this.#hand.sweep();
  }
}

/** A drain runs one task at a time, so a handler that waits in place for other tasks would wait forever. */
function withoutHolds(services: ContextServices): ContextServices {
  const map: ContextServices["map"] = async (execution, call) => {
    if (!call.hold) return services.map(execution, call);
    throw new SluiceError(
      "not_drained",
      `ctx.map ${quote(call.name)} with hold: true keeps its task running, but a drain runs one task at a time: ` +
        "test it with a worker, or without hold",
    );
  };
  return { ...services, map };
}

/** Creates a database for one test, as a copy of one that was migrated once. End it with close(). */
export async function testSluice(options: TestOptions = {}): Promise<TestSluice> {
  checkOptions("testSluice", options, OPTIONS);
  // A sluice.toml in the working directory is meant for the real application, which may already use its port.
  const { handlers: given = [], url, now = new Date(), config = false, ...rest } = options;
  if (typeof given !== "function") checkHandlers(given);
  const schema = checkSchemaName(options.schema ?? "sluice");
  const server = await serverUrl(url, process.env);
  const copy = await copyTemplate({ url: server, schema });
  let rehearsal: Rehearsal | undefined;
  try {
    const defaults = { config, logger: silentLogger, listen: false, apiConnections: 4 };
    rehearsal = await Rehearsal.open({ ...defaults, ...rest, url: copy, migrate: false });
    const handlers = typeof given === "function" ? await given(rehearsal, copy) : given;
    const streams = await streamsOf(rehearsal, checkHandlers(handlers));
    const test = new TestSluice({ rehearsal, handlers: streams, url: copy, server, now });
    await test.clock.set(now);
    return test;
  } catch (e) {
    await rehearsal?.close();
    await dropCopy(server, copy);
    throw e;
  }
}

async function streamsOf(rehearsal: Rehearsal, handlers: readonly AnyHandler[]) {
  const streams = new Map<number, AnyHandler>();
  for (const handler of handlers)
    streams.set(await rehearsal.parts.services.declarations.stream(handler.contract), handler);
  return streams;
}

function checkHandlers(handlers: unknown): readonly AnyHandler[] {
  if (!Array.isArray(handlers)) throw refusal("handlers must be a list, or a function that returns one");
  const seen = new Set<string>();
  for (const h of handlers as readonly Partial<AnyHandler>[]) {
    if (typeof h?.run !== "function" || h.contract === undefined)
      throw refusal("handlers must be made by task(...).handle(fn)");
    const of = `${h.contract.queue}\u001f${h.contract.type}`;
    if (seen.has(of)) throw refusal(`there are two handlers for task ${h.contract.type}`);
    seen.add(of);
  }
  return handlers as AnyHandler[];
}

function refusal(message: string): SluiceError {
  return new SluiceError("invalid_option", message, { details: { option: "handlers" } });
}
