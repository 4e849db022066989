import { classify, isOutcome } from "../core/outcome.js";
import { SluiceError } from "../core/error.js";
import { describeError, storable } from "../core/json.js";
import type { Clock, Logger } from "../core/ports.js";
import { delayFor } from "../core/retry.js";
import { tellTrouble } from "../postgres/errors.js";
import type { Settlement } from "../postgres/settle.js";
import type { ClaimedTask } from "../postgres/step.js";
import { ExecutionSpan } from "../trace/execution.js";
import { ExecutionContext, type ContextServices } from "./context.js";
import { noMeter, type Ending, type Meter } from "./metrics/meter.js";
import type { MiddlewareChain } from "./middleware.js";
import { Outages } from "./outage.js";
import type { Outbox } from "./outbox.js";
import type { Reports } from "./reports.js";
import { resultText } from "./result.js";
import { perform, Execution, type AnyHandler } from "./execution.js";
import { logFailure, type Outcome } from "./failure.js";
import type { Session } from "./session.js";

interface ExecutionsOptions {
  readonly handlers: ReadonlyMap<number, AnyHandler>;
  readonly outbox: Outbox;
  readonly services: ContextServices;
  readonly clock: Clock;
  readonly log: Logger;
  readonly resultBytesMax: number;
  /** Receives measurements. Default: none. */
  readonly meter?: Meter;
  /** Runs around every handler. Default: none. */
  readonly middleware?: MiddlewareChain;
  /** Reports outcomes and stalled handlers to listeners. Default: none. */
  readonly reports?: Reports;
  /** An outcome was added to the outbox. */
  readonly onOutcome: () => void;
  /** A permit is free without an outcome to record: the transaction already recorded it. */
  readonly onRecorded: (execution: Execution) => void;
}

// How long an aborted handler may keep running before its task proceeds without it.
const ABORT_GRACE_MS = 1_000;

/**
 * Runs tasks: resolve, perform, classify, and hand the outcome to the outbox. Every execution ends exactly once,
 * whether its handler returns, throws, hangs or returns long after the execution was given up.
 */
export class Executions {
  readonly #o: ExecutionsOptions;
  readonly #meter: Meter;
  readonly #executions = new Set<Execution>();
  readonly #abortedAt = new Map<Execution, number>();
  /** Executions whose handlers were aborted and still run, although their tasks proceed without them. */
  readonly #strays = new Set<Execution>();
  readonly #outages = new Outages();
  #leaving = false;
  /** Total length of the inputs of executing tasks, as JSON text. */
  inputLength = 0;
  completed = 0;
  failed = 0;

  constructor(options: ExecutionsOptions) {
    this.#o = options;
    this.#meter = options.meter ?? noMeter;
  }

  get size(): number {
    return this.#executions.size;
  }

  get abandoned(): number {
    return this.#strays.size;
  }

  start(task: ClaimedTask, session: Session): void {
    const handler = this.#o.handlers.get(task.stream);
    // A missing handler cannot happen, because the database returns only the streams that the claim asked for. While
    // leaving, this is the reply to a claim that was in flight, perhaps with tasks that were just handed back.
    // guard: what arrives while leaving is handed back -> test/worker/executions.test.ts: "a task that arrives after the worker has released its tasks is released too"
    if (handler === undefined /* guard:leaving */ || this.#leaving /* end */) {
      this.#o.outbox.addOther(session, {
        claim: task.claim,
        kind: "release",
        delayMs: 0,
        outcome: "",
      });
      return this.#o.onOutcome();
    }
    const execution = new Execution(task, handler, session, this.#o.clock.now());
    session.executions.set(execution.claim.id, execution);
    this.#executions.add(execution);
    this.inputLength += execution.inputLength;
    this.#meter.started(execution.startedMs);
    if (this.#o.services.tracing) execution.span = ExecutionSpan.begin(task, handler.contract);
    const ctx = new ExecutionContext(execution, this.#o.services);
    try {
      const out = perform(execution, task.input, ctx as never, this.#o.middleware ?? null);
      if (isThenable(out)) {
        // Use a native promise: a foreign thenable may call back in the handler's asynchronous context, and everything
        // that follows would run there, up to the next task's handler.
        Promise.resolve(out).then(
          (value) => this.#returned(execution, ctx, value),
          (e: unknown) => this.#threw(execution, ctx, e),
        );
      } else this.#returned(execution, ctx, out);
    } catch (e) {
      this.#threw(execution, ctx, e);
    }
  }

  /** Aborts executions whose deadline has passed, and gives up those that were aborted and did not stop. */
  sweep(): void {
    const now = this.#o.clock.now();
    for (const execution of this.#executions) {
      if (execution.deadlineMs <= now && execution.aborted === null) {
        this.abort(
          execution,
          new SluiceError(
            "timeout",
            `the handler took longer than ${Math.round(execution.deadlineMs - execution.startedMs)} ms`,
          ),
        );
        this.#o.reports?.stalled(execution, "timeout");
      }
    }
    for (const [execution, at] of this.#abortedAt) {
      if (now - at < ABORT_GRACE_MS) continue;
      this.#abandon(execution);
      this.#cutOff(execution);
      this.#logStray(execution);
      this.#endUnsuccessful(execution, execution.aborted);
    }
  }

  abort(execution: Execution, reason: SluiceError): void {
    execution.abort(reason);
    if (!this.#abortedAt.has(execution)) this.#abortedAt.set(execution, this.#o.clock.now());
  }

  /** A cancel was requested. */
  cancel(session: Session, id: string, reason: string | null): void {
    const execution = session.executions.get(id);
    if (execution !== undefined)
      this.abort(execution, new SluiceError("task_cancelled", reason ?? "cancelled", { details: { reason } }));
  }

  /** The session's lease is gone: aborts its executions, which record nothing. Returns the number of executions. */
  drop(session: Session, reason: SluiceError): number {
    const executions = [...session.executions.values()];
    for (const execution of executions) {
      execution.abort(reason);
      execution.span?.failed(reason);
      // guard: nothing is recorded after a lost lease -> test/worker/properties.test.ts: "an execution aborted for a lost lease records nothing, and is aborted before its lease runs out"
      /* guard:lost */ if (this.#leave(execution, "lost")) /* end */ this.#abandon(execution);
    }
    this.#cutOffLater();
    return executions.length;
  }

  /** Hands back executing tasks and tasks that still arrive, without using up an attempt. */
  release(reason: SluiceError): void {
    this.#leaving = true;
    for (const execution of this.#executions) {
      execution.abort(reason);
      this.#abandon(execution);
      this.#other(execution, { kind: "release", delayMs: 0, outcome: "" }, "released");
    }
    this.#cutOffLater();
  }

  /** The handler has returned. Calls on its ctx that it did not await still belong to its execution. */
  #returned(execution: Execution, ctx: ExecutionContext, value: unknown): void {
    if (ctx.quiet) return this.#succeed(execution, ctx, value);
    ctx.settled().then(
      () => this.#succeed(execution, ctx, value),
      (e: unknown) => this.#endUnsuccessful(execution, e),
    );
  }

  /**
   * The handler has thrown. An open transaction may still complete the task; if it does not, this error is the failure.
   */
  #threw(execution: Execution, ctx: ExecutionContext, e: unknown): void {
    if (ctx.quiet) return this.#endUnsuccessful(execution, e);
    const end = (): void => this.#endUnsuccessful(execution, e);
    ctx.settled().then(end, end);
  }

  /**
   * The handler has returned a value. A task that was asked to stop succeeds if its handler returns within the grace
   * period, because the work is done; a handler that returns after its timeout has failed.
   */
  #succeed(execution: Execution, ctx: ExecutionContext, value: unknown): void {
    if (execution.finished) return this.#forgetStray(execution);
    if (execution.aborted?.code === "timeout") return this.#endUnsuccessful(execution, execution.aborted);
    if (isOutcome(value) || execution.waitsFor !== null) return this.#endUnsuccessful(execution, value);
    if (ctx.hasPending) {
      ctx.complete(value).catch((e: unknown) => this.#endUnsuccessful(execution, e));
      return;
    }
    if (!this.#leave(execution, "succeeded")) return;
    this.#outages.over(execution.claim.id);
    this.completed++;
    const result = resultText(execution, value, this.#o);
    const { claim, holds, startedMs } = execution;
    this.#o.reports?.returned(execution);
    this.#o.outbox.addSuccess(execution.session, { claim, result, holds, startedMs });
    this.#o.onOutcome();
  }

  /** The execution's own transaction has committed, so the outcome is already recorded. */
  recorded(execution: Execution): void {
    this.#meter.completed(1);
    this.#meter.answered([execution], this.#o.clock.now());
    this.#o.reports?.committed(execution);
    if (!this.#leave(execution, "succeeded")) return this.#forgetStray(execution);
    this.#outages.over(execution.claim.id);
    this.completed++;
    this.#o.onRecorded(execution);
  }

  /** Any end but success: a failure, a retry, a snooze, a cancel, a wait for a map, an outage. */
  #endUnsuccessful(execution: Execution, e: unknown): void {
    if (execution.finished) {
      if (execution.aborted === null) this.#tellLate(execution, e);
      return this.#forgetStray(execution);
    }
    const settlement = this.#settlementOf(execution, e);
    const { kind } = settlement;
    const putOff = kind === "snooze" && execution.excused(e);
    if (!putOff) this.#outages.over(execution.claim.id);
    this.#o.reports?.threw(execution, e);
    this.#other(execution, settlement, putOff ? "released" : endingOf(execution, kind));
  }

  #settlementOf(execution: Execution, e: unknown): Omit<Outcome, "claim"> {
    const { aborted } = execution;
    if (aborted?.code === "task_cancelled") return cancelled(aborted.details?.["reason"] as string | null);
    // guard: a timeout stays a failure -> test/worker/handler.test.ts: "a handler that snoozes or cancels after its timeout counts as failed"
    const late = aborted?.code === "timeout";
    if (execution.waitsFor !== null && !late) return waiting(execution.waitsFor);
    // guard: an outage is no failure -> test/worker/outage.test.ts: "a backend terminated during a transaction uses no attempt, also if a library wraps the error"
    if (!late && /* guard:outage */ execution.excused(e) && /* end */ this.#outages.excuses(execution.claim.id))
      return this.#putOff(execution, e);
    const thrown = classify(/* guard:timeout */ late ? aborted : /* end */ e);
    if (thrown.kind === "snooze") return { kind: "snooze", delayMs: thrown.delayMs, outcome: "" };
    if (thrown.kind === "cancel") return cancelled(thrown.reason);
    this.failed++;
    const error = aborted ?? thrown.error;
    execution.span?.failed(error);
    const described = describeError(error);
    const kind = execution.invalid
      ? "invalid"
      : (thrown.final && error === thrown.error) || (execution.final !== null && error === execution.final)
        ? "fail"
        : "retry";
    const { attempt, claim, handler } = execution;
    const { type, attempts, backoff } = handler.contract;
    const isFinal = kind === "fail" || attempt >= attempts;
    const loggers = { log: this.#o.log, logger: this.#o.services.log };
    return {
      kind,
      delayMs: delayFor(backoff, attempt),
      outcome: storable(described, 64 * 1024),
      attempt,
      tell: (verdict) => logFailure(loggers, { id: claim.id, type, attempt, error, described, isFinal }, verdict),
    };
  }

  /**
   * The database was unavailable when the handler needed it. This is not a failure of the task, which runs again soon.
   */
  #putOff(execution: Execution, e: unknown): Omit<Settlement, "claim"> {
    execution.span?.failed(e);
    tellTrouble(
      this.#o.log,
      "a task is retried later without using an attempt, because the database was unavailable",
      e,
    );
    return { kind: "snooze", delayMs: this.#outages.delayMs(execution.claim.id), outcome: "" };
  }

  #other(execution: Execution, settlement: Omit<Outcome, "claim">, ending: Ending): void {
    if (!this.#leave(execution, ending)) return;
    this.#o.outbox.addOther(execution.session, { claim: execution.claim, ...settlement });
    this.#o.onOutcome();
  }

  #leave(execution: Execution, ending: Ending): boolean {
    if (!execution.finish()) return false;
    this.#meter.ended(execution.stream, ending, execution.startedMs, this.#o.clock.now());
    execution.span?.end(ending);
    this.#executions.delete(execution);
    this.inputLength -= execution.inputLength;
    this.#abortedAt.delete(execution);
    execution.session.executions.delete(execution.claim.id);
    return true;
  }

  #abandon(execution: Execution): void {
    this.#strays.add(execution);
  }

  /** Cuts off and logs strays after the grace period: handlers aborted just now may still stop. */
  #cutOffLater(): void {
    const aborted = [...this.#strays];
    const cutOff = (): void => {
      for (const execution of aborted) {
        if (!this.#strays.has(execution)) continue;
        this.#cutOff(execution);
        this.#logStray(execution);
      }
    };
    if (aborted.length > 0) setTimeout(cutOff, ABORT_GRACE_MS).unref();
  }

  /** Ends the transaction of a stray: its connection goes back to the pool. */
  #cutOff(execution: Execution): void {
    // guard: a transaction of an execution that was given up is cut off -> test/worker/transaction.test.ts: "a transaction that never ends releases its connection when its lease is lost"
    /* guard:give-up */ execution.giveUp(); /* end */
  }

  #logStray(execution: Execution): void {
    this.#o.log.warn("a handler ignored its abort signal and still runs; its task continues without it", {
      task: execution.claim.id,
      type: execution.handler.contract.type,
    });
    this.#o.reports?.stalled(execution, "abort_ignored");
  }

  #tellLate(execution: Execution, e: unknown): void {
    const { contract } = execution.handler;
    this.#o.log.warn("a handler failed after its transaction had completed its task", {
      task: execution.claim.id,
      type: contract.type,
      error: describeError(e).message,
    });
  }

  #forgetStray(execution: Execution): void {
    this.#strays.delete(execution);
  }
}

function cancelled(reason: string | null): Omit<Settlement, "claim"> {
  return { kind: "cancel", delayMs: 0, outcome: storable({ reason }, 4096) };
}

const ENDINGS = {
  fail: "failed",
  cancel: "cancelled",
  snooze: "snoozed",
  release: "released",
  invalid: "failed",
  wait: "waiting",
} as const;

function endingOf(execution: Execution, kind: Settlement["kind"]): Ending {
  if (kind !== "retry") return ENDINGS[kind];
  return execution.attempt >= execution.handler.contract.attempts ? "failed" : "retried";
}

/** The task sleeps until one of these runs is over, then its handler runs again. */
function waiting(runs: readonly string[]): Omit<Settlement, "claim"> {
  return { kind: "wait", delayMs: 0, outcome: JSON.stringify(runs) };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
