import { classify, isOutcome } from "../core/outcome.js";
import { isSluiceError, SluiceError } from "../core/error.js";
import { describeError, storable, type ErrorDescription } from "../core/json.js";
import type { Clock, Logger } from "../core/ports.js";
import { delayFor } from "../core/retry.js";
import { tellTrouble } from "../postgres/fault.js";
import type { Settlement } from "../postgres/settle.js";
import type { ClaimedTask } from "../postgres/step.js";
import { RunSpan } from "../trace/run.js";
import { RunContext, type ContextDesk } from "./context.js";
import { noMeter, type Ending, type Meter } from "./meter.js";
import { Outages } from "./outage.js";
import type { Outbox } from "./outbox.js";
import { resultText } from "./result.js";
import { perform, Run, type AnyHandler } from "./run.js";
import type { Session } from "./session.js";

interface CrewOptions {
  readonly handlers: ReadonlyMap<number, AnyHandler>;
  readonly outbox: Outbox;
  readonly desk: ContextDesk;
  readonly clock: Clock;
  readonly log: Logger;
  readonly resultBytesMax: number;
  /** Who wants to know what happens; nobody by default. */
  readonly meter?: Meter;
  /** Something was put into the outbox. */
  readonly onOutcome: () => void;
  /** A permit came back without an outcome to record: the transaction had recorded it. */
  readonly onRecorded: (run: Run) => void;
}

// How long a handler that was told to stop may take before its task goes on without it.
const ABORT_GRACE_MS = 1_000;

/**
 * Runs tasks: resolve, perform, classify, and hand the outcome to the outbox. Every run ends exactly
 * once, whether its handler returns, throws, hangs or comes back long after it was given up.
 */
export class Crew {
  readonly #o: CrewOptions;
  readonly #meter: Meter;
  readonly #runs = new Set<Run>();
  readonly #abortedAt = new Map<Run, number>();
  /** Handlers that were told to stop and still run, although their task goes on without them. */
  readonly #strays = new Set<Run>();
  readonly #outages = new Outages();
  #leaving = false;
  /** What the inputs in hand take, as JSON text. */
  inputLength = 0;
  completed = 0;
  failed = 0;

  constructor(options: CrewOptions) {
    this.#o = options;
    this.#meter = options.meter ?? noMeter;
  }

  get size(): number {
    return this.#runs.size;
  }

  get abandoned(): number {
    return this.#strays.size;
  }

  start(task: ClaimedTask, session: Session): void {
    const handler = this.#o.handlers.get(task.stream);
    // No handler: cannot be, because the database gives us only streams that we asked for. Leaving: the
    // reply to a claim that was under way, perhaps with what we have just handed back.
    // guard: what arrives while leaving is handed back -> test/worker/crew.test.ts: "a task that arrives after all were handed back is handed back too"
    if (handler === undefined /* guard:leaving */ || this.#leaving /* end */) {
      this.#o.outbox.addOther(session, {
        claim: task.claim,
        kind: "release",
        delayMs: 0,
        outcome: "",
      });
      return this.#o.onOutcome();
    }
    const run = new Run(task, handler, session, this.#o.clock.now());
    session.runs.set(run.claim.id, run);
    this.#runs.add(run);
    this.inputLength += run.inputLength;
    this.#meter.started(run.startedMs);
    if (this.#o.desk.tracing) run.span = RunSpan.begin(task, handler.contract);
    const ctx = new RunContext(run, this.#o.desk);
    try {
      const out = perform(run, task.input, ctx as never);
      if (isThenable(out)) {
        // A promise of our own: another's may call back in the handler's asynchronous context, and so would
        // all that follows, up to the next task's handler.
        Promise.resolve(out).then(
          (value) => this.#returned(run, ctx, value),
          (e: unknown) => this.#threw(run, ctx, e),
        );
      } else this.#returned(run, ctx, out);
    } catch (e) {
      this.#threw(run, ctx, e);
    }
  }

  /** Tells runs to stop whose time is over, and gives up those that were told and did not. */
  sweep(): void {
    const now = this.#o.clock.now();
    for (const run of this.#runs) {
      if (run.deadlineMs <= now && run.aborted === null) {
        this.abort(
          run,
          new SluiceError("timeout", `the handler took longer than ${Math.round(run.deadlineMs - run.startedMs)} ms`),
        );
      }
    }
    for (const [run, at] of this.#abortedAt) {
      if (now - at < ABORT_GRACE_MS) continue;
      this.#abandon(run);
      this.#tellStray(run);
      this.#fail(run, run.aborted);
    }
  }

  abort(run: Run, reason: SluiceError): void {
    run.abort(reason);
    if (!this.#abortedAt.has(run)) this.#abortedAt.set(run, this.#o.clock.now());
  }

  /** A cancel was asked for. */
  cancel(session: Session, id: string, reason: string | null): void {
    const run = session.runs.get(id);
    if (run !== undefined)
      this.abort(run, new SluiceError("task_cancelled", reason ?? "cancelled", { details: { reason } }));
  }

  /** The session's lease is gone: its runs stop and leave nothing behind. Returns how many there were. */
  drop(session: Session, reason: SluiceError): number {
    const runs = [...session.runs.values()];
    for (const run of runs) {
      run.abort(reason);
      run.span?.failed(reason);
      // guard: nothing is recorded after a lost lease -> test/worker/properties.test.ts: "a run aborted for a lost lease records nothing, and is aborted before its lease runs out"
      /* guard:lost */ if (this.#leave(run, "lost")) /* end */ this.#abandon(run);
    }
    this.#tellStraysLater();
    return runs.length;
  }

  /** Hands back what still runs and whatever comes yet, without using up an attempt. */
  release(reason: SluiceError): void {
    this.#leaving = true;
    for (const run of this.#runs) {
      run.abort(reason);
      this.#abandon(run);
      this.#other(run, { kind: "release", delayMs: 0, outcome: "" }, "released");
    }
    this.#tellStraysLater();
  }

  /** The handler has returned. What it asked of its ctx and did not wait for belongs to its run all the same. */
  #returned(run: Run, ctx: RunContext, value: unknown): void {
    if (ctx.quiet) return this.#succeed(run, ctx, value);
    ctx.settled().then(
      () => this.#succeed(run, ctx, value),
      (e: unknown) => this.#fail(run, e),
    );
  }

  /** The handler has thrown. A transaction under way may still complete its task; if not, this is why it failed. */
  #threw(run: Run, ctx: RunContext, e: unknown): void {
    if (ctx.quiet) return this.#fail(run, e);
    const fail = (): void => this.#fail(run, e);
    ctx.settled().then(fail, fail);
  }

  #succeed(run: Run, ctx: RunContext, value: unknown): void {
    if (run.finished) return this.#late(run);
    if (run.aborted?.code === "timeout") return this.#fail(run, run.aborted);
    if (isOutcome(value) || run.waitsFor !== null) return this.#fail(run, value);
    if (ctx.hasPending) {
      ctx.complete(value).catch((e: unknown) => this.#fail(run, e));
      return;
    }
    if (!this.#leave(run, "succeeded")) return;
    this.#outages.over(run.claim.id);
    this.completed++;
    const result = resultText(run, value, this.#o);
    const { claim, holds, startedMs } = run;
    this.#o.outbox.addSuccess(run.session, { claim, result, holds, startedMs });
    this.#o.onOutcome();
  }

  /** The run's own transaction has committed: it is recorded already. */
  recorded(run: Run): void {
    this.#meter.completed(1);
    this.#meter.answered([run], this.#o.clock.now());
    if (!this.#leave(run, "succeeded")) return this.#late(run);
    this.#outages.over(run.claim.id);
    this.completed++;
    this.#o.onRecorded(run);
  }

  #fail(run: Run, e: unknown): void {
    if (run.finished) {
      if (run.aborted === null) this.#tellLate(run, e);
      return this.#late(run);
    }
    const settlement = this.#settlementOf(run, e);
    const { kind } = settlement;
    const putOff = kind === "snooze" && run.excused(e);
    if (!putOff) this.#outages.over(run.claim.id);
    this.#other(run, settlement, putOff ? "released" : endingOf(run, kind));
  }

  #settlementOf(run: Run, e: unknown): Omit<Settlement, "claim"> {
    const { aborted } = run;
    if (aborted?.code === "task_cancelled") return cancelled(aborted.details?.["reason"] as string | null);
    // guard: a timeout stays a failure -> test/worker/handler.test.ts: "a handler that snoozes or cancels after its timeout has failed"
    const late = aborted?.code === "timeout";
    if (run.waitsFor !== null && !late) return waiting(run.waitsFor);
    // guard: an outage is no failure -> test/worker/outage.test.ts: "a backend that is terminated under a transaction costs no attempt, also when a library wraps the error"
    if (!late && /* guard:outage */ run.excused(e) && /* end */ this.#outages.excuses(run.claim.id))
      return this.#putOff(run, e);
    const thrown = classify(/* guard:timeout */ late ? aborted : /* end */ e);
    if (thrown.kind === "snooze") return { kind: "snooze", delayMs: thrown.delayMs, outcome: "" };
    if (thrown.kind === "cancel") return cancelled(thrown.reason);
    this.failed++;
    const error = aborted ?? thrown.error;
    run.span?.failed(error);
    const described = describeError(error);
    const kind = run.invalid ? "invalid" : run.final !== null && error === run.final ? "fail" : "retry";
    const final = kind === "fail" || run.attempt >= run.handler.contract.attempts;
    this.#tellFailure(run, error, described, final);
    return {
      kind,
      delayMs: delayFor(run.handler.contract.backoff, run.attempt),
      outcome: storable(described, 64 * 1024),
    };
  }

  /** The database was away when the handler needed it: no failure of the task, which runs again soon. */
  #putOff(run: Run, e: unknown): Omit<Settlement, "claim"> {
    run.span?.failed(e);
    tellTrouble(this.#o.log, "a task was put off, without using up an attempt", e);
    return { kind: "snooze", delayMs: this.#outages.delayMs(run.claim.id), outcome: "" };
  }

  /**
   * A failure that is tried again is one of many: at most a line a second. One for good is told each time,
   * but for what a lost database causes: that hits everything at once and is told as one trouble.
   */
  #tellFailure(run: Run, error: unknown, { message, stack }: ErrorDescription, final: boolean): void {
    const { contract } = run.handler;
    const words = final ? "a task failed for good" : "a task failed";
    if (isSluiceError(error, "database_unavailable")) return tellTrouble(this.#o.log, words, error);
    const about = { task: run.claim.id, type: contract.type, attempt: run.attempt, error: message };
    if (!final) return this.#o.log.warn(words, about);
    try {
      this.#o.desk.log.error(words, { ...about, stack });
    } catch {
      // A logger that throws must not take the outcome with it.
    }
  }

  #other(run: Run, settlement: Omit<Settlement, "claim">, ending: Ending): void {
    if (!this.#leave(run, ending)) return;
    this.#o.outbox.addOther(run.session, { claim: run.claim, ...settlement });
    this.#o.onOutcome();
  }

  #leave(run: Run, ending: Ending): boolean {
    if (!run.finish()) return false;
    this.#meter.ended(run.stream, ending, run.startedMs, this.#o.clock.now());
    run.span?.end(ending);
    this.#runs.delete(run);
    this.inputLength -= run.inputLength;
    this.#abortedAt.delete(run);
    run.session.runs.delete(run.claim.id);
    return true;
  }

  #abandon(run: Run): void {
    this.#strays.add(run);
  }

  /** Whoever was told just now may still heed it. */
  #tellStraysLater(): void {
    const told = [...this.#strays];
    const tell = (): void => told.filter((run) => this.#strays.has(run)).forEach((run) => this.#tellStray(run));
    if (told.length > 0) setTimeout(tell, ABORT_GRACE_MS).unref();
  }

  #tellStray(run: Run): void {
    // guard: a transaction of a run that was given up is cut off -> test/worker/transaction.test.ts: "a transaction that never ends gives its place back when its lease is lost"
    /* guard:give-up */ run.giveUp(); /* end */
    this.#o.log.warn("a handler was told to stop and still runs; its task goes on without it", {
      task: run.claim.id,
      type: run.handler.contract.type,
    });
  }

  #tellLate(run: Run, e: unknown): void {
    const { contract } = run.handler;
    this.#o.log.warn("a handler failed after its transaction had completed its task", {
      task: run.claim.id,
      type: contract.type,
      error: describeError(e).message,
    });
  }

  #late(run: Run): void {
    this.#strays.delete(run);
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

function endingOf(run: Run, kind: Settlement["kind"]): Ending {
  if (kind !== "retry") return ENDINGS[kind];
  return run.attempt >= run.handler.contract.attempts ? "failed" : "retried";
}

/** It sleeps until one of these is over, then its handler runs again. */
function waiting(runs: readonly string[]): Omit<Settlement, "claim"> {
  return { kind: "wait", delayMs: 0, outcome: JSON.stringify(runs) };
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
