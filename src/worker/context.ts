import type { TaskContext } from "../core/context.js";
import type { EnqueueOptions } from "../core/enqueue.js";
import { SluiceError } from "../core/error.js";
import { checkInteger } from "../core/number.js";
import type { Logger, Queryable } from "../core/ports.js";
import type { TaskTerms } from "../core/terms.js";
import type { Run } from "./run.js";

/** What a context needs from its worker. */
export interface ContextDesk {
  readonly log: Logger;
  now(): number;
  /** Runs fn and completes the task in one transaction. */
  transaction<R>(
    run: Run,
    pending: readonly PendingEnqueue[],
    fn: (tx: Queryable) => Promise<R>,
  ): Promise<R>;
  /** Checks an enqueue now; what it returns inserts the task in a transaction. */
  prepare(
    terms: TaskTerms<never>,
    input: unknown,
    options: EnqueueOptions,
  ): Promise<PendingEnqueue>;
}

/** A checked enqueue that waits for the completion it is bound to. */
export type PendingEnqueue = (tx: Queryable) => Promise<void>;

const EXTEND_RANGE = { min: 1, max: 2_147_483_647 };

/** The ctx of one run. */
export class RunContext implements TaskContext {
  readonly #run: Run;
  readonly #desk: ContextDesk;
  readonly #pending: PendingEnqueue[] = [];

  constructor(run: Run, desk: ContextDesk) {
    this.#run = run;
    this.#desk = desk;
  }

  get id(): string {
    return this.#run.claim.id;
  }
  get type(): string {
    return this.#run.handler.contract.type;
  }
  get queue(): string {
    return this.#run.handler.contract.queue;
  }
  get attempt(): number {
    return this.#run.attempt;
  }
  get claim(): string {
    return this.#run.claim.token;
  }
  get signal(): AbortSignal {
    return this.#run.signal;
  }

  get log(): Logger {
    const about = { task: this.id, type: this.type, attempt: this.attempt };
    const { log } = this.#desk;
    const at = (level: keyof Logger) => (message: string, fields?: Record<string, unknown>) =>
      log[level](message, { ...about, ...fields });
    return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
  }

  /** Enqueues that wait for this run's completion. */
  get pending(): readonly PendingEnqueue[] {
    return this.#pending;
  }

  extendLease(ms: number): void {
    this.#run.deadlineMs = this.#desk.now() + checkInteger("extendLease", ms, EXTEND_RANGE);
  }

  async transaction<R>(fn: (tx: Queryable) => Promise<R>): Promise<R> {
    if (this.#run.finished) throw alreadySettled(this.id);
    return this.#desk.transaction(this.#run, this.pending, fn);
  }

  async enqueue(
    terms: TaskTerms<never>,
    input?: unknown,
    options: EnqueueOptions = {},
  ): Promise<void> {
    if (this.#run.finished) throw alreadySettled(this.id);
    if (options.tx !== undefined) throw ownTransaction();
    const pending = await this.#desk.prepare(terms, input, options);
    this.#pending.push(pending);
  }
}

function ownTransaction(): SluiceError {
  const message = "ctx.enqueue belongs to the completion of its run and takes no tx";
  return new SluiceError("invalid_option", message, { details: { option: "tx" } });
}

function alreadySettled(id: string): SluiceError {
  return new SluiceError("not_claimed", `task ${id} is settled: it can do nothing more`);
}
