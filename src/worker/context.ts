import { executionOf } from "../core/claim.js";
import type { TaskContext } from "../core/context.js";
import type { EnqueueOptions } from "../core/enqueue.js";
import { SluiceError } from "../core/error.js";
import { checkInteger } from "../core/number.js";
import { isOutcome, waits } from "../core/outcome.js";
import type { Logger, Queryable } from "../core/ports.js";
import type { TaskTerms } from "../core/terms.js";
import { mapCallOf, type MapCall } from "../runs/map-call.js";
import { Calls, type CallKind } from "./calls.js";
import type { Execution } from "./execution.js";

/** What a context needs from its worker. */
export interface ContextServices {
  /** Whether an execution has a span, where an SDK is registered. */
  readonly tracing: boolean;
  readonly log: Logger;
  now(): number;
  /** Runs fn and completes the task in one transaction. */
  transaction<R>(
    execution: Execution,
    pending: readonly PendingEnqueue[],
    fn: (tx: Queryable) => Promise<R>,
  ): Promise<R>;
  /** Checks an enqueue now; what it returns inserts the task in a transaction. */
  prepare(
    execution: Execution,
    terms: TaskTerms<never>,
    input: unknown,
    options: EnqueueOptions,
  ): Promise<PendingEnqueue>;
  /** What the items of a fan-out came to; throws a WaitOutcome while they are not over. */
  map(execution: Execution, call: MapCall): Promise<unknown>;
  /** A call failed that nobody looks at, and its execution is over. */
  late(execution: Execution, error: unknown): void;
}

/** A checked enqueue that waits for the completion it is bound to. */
export type PendingEnqueue = (tx: Queryable) => Promise<void>;

const EXTEND_RANGE = { min: 1, max: 2_147_483_647 };

/** The ctx of one execution. What a handler may take out of it, `const { enqueue } = ctx`, is made when it is asked for. */
export class ExecutionContext implements TaskContext {
  readonly #execution: Execution;
  readonly #services: ContextServices;
  /** Made by the first call: most handlers make none. */
  #calls: Calls | null = null;
  #pending: PendingEnqueue[] | null = null;
  /** Transactions under way. */
  #transacting = 0;
  /** What is pending is on its way to the database: nothing can join it. */
  #sealed = false;

  constructor(execution: Execution, services: ContextServices) {
    this.#execution = execution;
    this.#services = services;
  }

  get id(): string {
    return this.#execution.claim.id;
  }
  get idempotencyKey(): string {
    return `${this.#execution.claim.id}-${this.#execution.nonce}`;
  }
  get type(): string {
    return this.#execution.handler.contract.type;
  }
  get queue(): string {
    return this.#execution.handler.contract.queue;
  }
  get attempt(): number {
    return this.#execution.attempt;
  }
  get claim(): string {
    return executionOf(this.#execution.claim);
  }
  get signal(): AbortSignal {
    return this.#execution.signal;
  }

  get log(): Logger {
    const about = { task: this.id, type: this.type, attempt: this.attempt };
    const { log } = this.#services;
    const at = (level: keyof Logger) => (message: string, fields?: Record<string, unknown>) =>
      log[level](message, { ...about, ...fields });
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }

  get extendLease(): TaskContext["extendLease"] {
    return (ms) => {
      this.#execution.deadlineMs = this.#services.now() + checkInteger("extendLease", ms, EXTEND_RANGE);
    };
  }

  get transaction(): TaskContext["transaction"] {
    return (fn) => this.#follow("transaction", this.#transact(fn));
  }

  get enqueue(): TaskContext["enqueue"] {
    return (terms, ...args) => {
      const [input, options = {}] = args as [unknown, EnqueueOptions?];
      return this.#follow("enqueue", this.#enqueue(terms as TaskTerms<never>, input, options));
    };
  }

  get map(): TaskContext["map"] {
    const map = (...args: Parameters<typeof mapCallOf>): Promise<unknown> => this.#follow("map", this.#map(...args));
    return map as TaskContext["map"];
  }

  /** For console.log: the rest is getters, which it does not show. */
  [Symbol.for("nodejs.util.inspect.custom")](_: number, options: object, inspect: Inspect): string {
    const { id, type, queue, attempt, claim } = this;
    const aborted = this.#execution.aborted?.code ?? false;
    return `TaskContext ${inspect({ id, type, queue, attempt, claim, aborted }, options)}`;
  }

  /** Whether the execution may end without a look at what it asked for here. */
  get quiet(): boolean {
    return this.#calls === null || this.#calls.quiet;
  }

  /** Waits for what the handler asked for and did not wait for itself; throws what failed unheard. */
  settled(): Promise<void> {
    return this.#calls?.settled() ?? Promise.resolve();
  }

  /** Whether tasks wait for this execution's completion, which is then a transaction. */
  get hasPending(): boolean {
    return this.#pending !== null && this.#pending.length > 0;
  }

  /** Completes the execution with this result, together with what it has enqueued. */
  complete(value: unknown): Promise<unknown> {
    return this.#transact(() => Promise.resolve(value));
  }

  async #map(...args: Parameters<typeof mapCallOf>): Promise<unknown> {
    this.#checkGoing();
    // Both need a connection of the same few: executions that have one and wait for another would wait for each other.
    if (this.#transacting > 0) throw mapInTransaction();
    return this.#services.map(this.#execution, mapCallOf(...args));
  }

  /** An execution that is over, or waits for a map and swallowed that, does nothing more. */
  #checkGoing(): void {
    if (this.#execution.finished) throw alreadySettled(this.id);
    // guard: a handler that goes on beside its map does nothing -> test/runs/map.test.ts: "a handler that swallows the wait of its map does nothing more in this execution"
    /* guard:beside-map */ if (this.#execution.waitsFor !== null) throw waits("of this execution"); /* end */
  }

  async #transact<R>(fn: (tx: Queryable) => Promise<R>): Promise<R> {
    this.#checkGoing();
    if (this.#calls !== null) {
      await this.#calls.settled("map");
      this.#checkGoing();
    }
    this.#pending ??= [];
    let mine = false;
    const all = async (tx: Queryable): Promise<R> => {
      const result = await fn(tx);
      if (isOutcome(result)) throw result;
      // Not for all calls: this transaction is one of them.
      await this.#calls?.settled("enqueue");
      mine = this.#sealed = true;
      return result;
    };
    this.#transacting++;
    try {
      return await this.#services.transaction(this.#execution, this.#pending, all);
    } catch (e) {
      // Another's may be on its way at this moment.
      if (mine) this.#sealed = false;
      throw e;
    } finally {
      this.#transacting--;
    }
  }

  async #enqueue(terms: TaskTerms<never>, input: unknown, options: EnqueueOptions): Promise<void> {
    this.#checkGoing();
    if (options.tx !== undefined) throw ownTransaction();
    const pending = await this.#services.prepare(this.#execution, terms, input, options);
    if (this.#execution.finished || this.#sealed) throw alreadySettled(this.id);
    (this.#pending ??= []).push(pending);
  }

  #follow<T>(kind: CallKind, work: Promise<T>): Promise<T> {
    this.#calls ??= new Calls();
    return this.#calls.follow(kind, work, (e) => {
      const over = this.#execution.finished || this.#sealed;
      if (over) this.#services.late(this.#execution, e);
      return over;
    });
  }
}

type Inspect = (value: unknown, options: object) => string;

function ownTransaction(): SluiceError {
  const message = "ctx.enqueue belongs to the completion of its execution and takes no tx";
  return new SluiceError("invalid_option", message, { details: { option: "tx" } });
}

function mapInTransaction(): SluiceError {
  return new SluiceError("invalid_option", "ctx.map cannot be called inside ctx.transaction");
}

function alreadySettled(id: string): SluiceError {
  return new SluiceError("not_claimed", `task ${id} is settled: it can do nothing more`);
}
