import { executionOf } from "../core/claim.js";
import type { ContextEnqueued, TaskContext } from "../core/context.js";
import type { EnqueueOptions } from "../core/enqueue.js";
import { SluiceError } from "../core/error.js";
import { checkMs } from "../core/number.js";
import { isOutcome, waits } from "../core/outcome.js";
import type { Logger, Queryable } from "../core/ports.js";
import type { TaskTerms } from "../core/terms.js";
import { mapCallOf, type MapCall } from "../runs/map-call.js";
import { Calls, type CallKind } from "./calls.js";
import type { Execution } from "./execution.js";
import { insertAll, PendingTask, type InsertTask } from "./pending.js";

/** The services that a context needs from its worker. */
export interface ContextServices {
  /** Whether executions have spans, if an SDK is registered. */
  readonly tracing: boolean;
  readonly log: Logger;
  now(): number;
  /** Runs fn and completes the task in one transaction. */
  transaction<R>(execution: Execution, pending: readonly PendingTask[], fn: (tx: Queryable) => Promise<R>): Promise<R>;
  /** Checks an enqueue now. The returned function inserts the task in a transaction. */
  prepare(execution: Execution, terms: TaskTerms<never>, input: unknown, options: EnqueueOptions): Promise<InsertTask>;
  /** Stores what the handler reports of its progress, soon and not too often. */
  progress(execution: Execution, fraction: number, data: unknown): void;
  /** Returns the results of a fan-out's items. Throws a WaitOutcome until all items are over. */
  map(execution: Execution, call: MapCall): Promise<unknown>;
  /** A call failed that no code observes, and its execution is over. */
  late(execution: Execution, error: unknown): void;
}

const EXTEND_RANGE = { min: 1, max: 2_147_483_647 };

/**
 * The ctx of one execution. Members that a handler may destructure, as in `const { enqueue } = ctx`, are created on
 * access.
 */
export class ExecutionContext implements TaskContext {
  readonly #execution: Execution;
  readonly #services: ContextServices;
  /** Created by the first call: most handlers make none. */
  #calls: Calls | null = null;
  #pending: PendingTask[] | null = null;
  /** Open transactions. */
  #transacting = 0;
  /** The transactions whose function is running. */
  readonly #open = new Set<Queryable>();
  /** The pending enqueues are on their way to the database: no more can join them. */
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

  get extend(): TaskContext["extend"] {
    return (ms) => {
      this.#execution.deadlineMs = this.#services.now() + checkMs("extend", ms, EXTEND_RANGE);
    };
  }

  get extendLease(): TaskContext["extend"] {
    return this.extend;
  }

  get progress(): TaskContext["progress"] {
    return (fraction, data) => this.#services.progress(this.#execution, fraction, data);
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

  /** For console.log, which does not show getters. */
  [Symbol.for("nodejs.util.inspect.custom")](_: number, options: object, inspect: Inspect): string {
    const { id, type, queue, attempt, claim } = this;
    const aborted = this.#execution.aborted?.code ?? false;
    return `TaskContext ${inspect({ id, type, queue, attempt, claim, aborted }, options)}`;
  }

  /** Whether the execution may end without checking the calls made here. */
  get quiet(): boolean {
    return this.#calls === null || this.#calls.quiet;
  }

  /** Waits for calls that the handler did not await. Throws the error of a call that failed unobserved. */
  settled(): Promise<void> {
    return this.#calls?.settled() ?? Promise.resolve();
  }

  /** Whether enqueued tasks wait for this execution's completion, which then needs a transaction. */
  get hasPending(): boolean {
    return this.#pending !== null && this.#pending.length > 0;
  }

  /** Completes the execution with this result, together with the tasks it enqueued. */
  complete(value: unknown): Promise<unknown> {
    return this.#transact(() => Promise.resolve(value));
  }

  async #map(...args: Parameters<typeof mapCallOf>): Promise<unknown> {
    this.#checkGoing();
    // Both need a connection from the same small pool: executions that hold one and wait for another would deadlock.
    if (this.#transacting > 0) throw mapInTransaction();
    return this.#services.map(this.#execution, mapCallOf(...args));
  }

  /**
   * Throws if the execution is over, or if it waits for a map and the handler swallowed the wait: it must do nothing
   * more.
   */
  #checkGoing(): void {
    if (this.#execution.finished) throw alreadySettled(this.id);
    // guard: a handler that goes on beside its map does nothing -> test/runs/map.test.ts: "a handler that catches the wait of its map can do nothing more in this execution"
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
    let used: Queryable | null = null;
    const all = async (tx: Queryable): Promise<R> => {
      this.#open.add((used = tx));
      const result = await fn(tx);
      if (isOutcome(result)) throw result;
      // Do not wait for all calls: this transaction is one of them.
      await this.#calls?.settled("enqueue");
      mine = this.#sealed = true;
      return result;
    };
    this.#transacting++;
    try {
      return await this.#services.transaction(this.#execution, this.#pending, all);
    } catch (e) {
      // Another transaction may be committing at this moment.
      if (mine) this.#sealed = false;
      for (const task of used === null ? [] : this.#pending) task.forget(used!);
      throw e;
    } finally {
      this.#transacting--;
      if (used !== null) this.#open.delete(used);
    }
  }

  async #enqueue(terms: TaskTerms<never>, input: unknown, options: EnqueueOptions): Promise<ContextEnqueued> {
    this.#checkGoing();
    if (options.tx !== undefined) throw ownTransaction();
    const task = new PendingTask(await this.#services.prepare(this.#execution, terms, input, options));
    if (this.#execution.finished || this.#sealed) throw alreadySettled(this.id);
    (this.#pending ??= []).push(task);
    // With several transactions it is unknown which one this call belongs to: the one that commits inserts the task.
    const [tx] = this.#open.size === 1 ? this.#open : [];
    if (tx !== undefined) await insertAll(this.#pending, tx);
    return task.enqueued;
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
  const message = "ctx.enqueue is committed with the completion of its task: pass no tx";
  return new SluiceError("invalid_option", message, { details: { option: "tx" } });
}

function mapInTransaction(): SluiceError {
  return new SluiceError("invalid_option", "ctx.map cannot be called inside ctx.transaction");
}

function alreadySettled(id: string): SluiceError {
  return new SluiceError("not_claimed", `task ${id} is settled: its ctx can no longer be used`);
}
