import type { Claim } from "../core/claim.js";
import type { SluiceError } from "../core/error.js";
import type { TaskHandler } from "../core/task.js";
import type { ClaimedTask } from "../postgres/step.js";
import type { ExecutionSpan } from "../trace/execution.js";
import type { MiddlewareChain } from "./middleware.js";
import type { Session } from "./session.js";

/** Any handler. Its types matter only where it is declared. */
export type AnyHandler = TaskHandler<never, never>;

/**
 * One executing task. It leaves `running` exactly once: finish() returns true to the first caller, and anything the
 * handler does after that has no effect.
 */
export class Execution {
  readonly claim: Claim;
  readonly stream: number;
  readonly attempt: number;
  readonly nonce: string;
  readonly holds: number;
  readonly inputLength: number;
  readonly alone: boolean;
  readonly handler: AnyHandler;
  readonly session: Session;
  readonly startedMs: number;
  /** When the execution times out. ctx.extend moves it. */
  deadlineMs: number;
  /** Why the execution was aborted, or null. */
  aborted: SluiceError | null = null;
  /** Null if tracing is off. */
  span: ExecutionSpan | null = null;
  /**
   * The fan-outs that the execution waits for, or null. Once set, the execution ends in a wait, whatever its handler
   * does.
   */
  waitsFor: string[] | null = null;
  /** The names of its maps, once it has created one or found an existing one. */
  maps: Set<string> | null = null;
  /** The input does not match the task's schema. */
  invalid = false;
  /** An error that a retry cannot change: the outcome of a map, which is final. */
  final: unknown = null;
  /** Errors that ctx threw because the database was unavailable. */
  #excused: WeakSet<object> | null = null;
  #controller: AbortController | null = null;
  #finished = false;
  /** Cut the connections of its transactions. Most executions have none. */
  #cuts: Set<() => void> | null = null;

  constructor(task: ClaimedTask, handler: AnyHandler, session: Session, nowMs: number) {
    this.claim = task.claim;
    this.stream = task.stream;
    this.attempt = task.attempt;
    this.nonce = task.nonce;
    this.holds = task.holds;
    this.inputLength = task.inputLength;
    this.alone = task.alone === true;
    this.handler = handler;
    this.session = session;
    this.startedMs = nowMs;
    this.deadlineMs = nowMs + (handler.contract.timeoutMs ?? Number.POSITIVE_INFINITY);
  }

  /** Created on first access: most handlers never use it, and an AbortController is not cheap. */
  get signal(): AbortSignal {
    if (this.#controller === null) {
      this.#controller = new AbortController();
      if (this.aborted !== null) this.#controller.abort(this.aborted);
    }
    return this.#controller.signal;
  }

  get finished(): boolean {
    return this.#finished;
  }

  /** Aborts the handler's signal with the reason. The first reason stays. */
  abort(reason: SluiceError): void {
    if (this.aborted !== null) return;
    this.aborted = reason;
    this.#controller?.abort(reason);
  }

  /**
   * Marks this error as excused: if the handler lets this same object propagate, the execution has not failed. Returns
   * it.
   */
  excuse(e: unknown): unknown {
    if (typeof e === "object" && e !== null) (this.#excused ??= new WeakSet()).add(e);
    return e;
  }

  /**
   * Compares the error itself, not its cause: a handler that wraps it in its own error has decided that this is a
   * failure.
   */
  excused(e: unknown): boolean {
    return typeof e === "object" && e !== null && this.#excused?.has(e) === true;
  }

  /**
   * Registers a callback for when the execution is given up during an operation. Returns a function that unregisters
   * it.
   */
  whenGivenUp(cut: () => void): () => void {
    const cuts = (this.#cuts ??= new Set());
    cuts.add(cut);
    return () => void cuts.delete(cut);
  }

  /**
   * The task proceeds without this execution: its open operations can no longer take effect, and may never end by
   * themselves.
   */
  giveUp(): void {
    for (const cut of this.#cuts ?? []) cut();
  }

  finish(): boolean {
    if (this.#finished) return false;
    // guard: an execution ends once -> test/worker/properties.test.ts: "every claimed task is settled, released or lost with its lease, and none is settled twice under one claim"
    /* guard:once */ this.#finished = true; /* end */
    return true;
  }
}

/** Calls the handler with its parsed input. Synchronous if schema and handler are, and there is no middleware. */
export function perform(execution: Execution, input: unknown, ctx: never, chain: MiddlewareChain | null): unknown {
  if (execution.span === null) return performWithin(execution, input, ctx, chain);
  return execution.span.within(() => performWithin(execution, input, ctx, chain));
}

function performWithin(execution: Execution, input: unknown, ctx: never, chain: MiddlewareChain | null): unknown {
  if (chain === null || chain.empty) return performHere(execution, input, ctx);
  return chain.run(ctx, () => performHere(execution, input, ctx));
}

function performHere(execution: Execution, input: unknown, ctx: never): unknown {
  let parsed: unknown;
  try {
    parsed = execution.handler.contract.parse(input);
  } catch (e) {
    return refuse(execution, e);
  }
  if (parsed instanceof Promise) {
    return parsed.then(
      (value) => execution.handler.run(value as never, ctx),
      (e: unknown) => refuse(execution, e),
    );
  }
  return execution.handler.run(parsed as never, ctx);
}

function refuse(execution: Execution, e: unknown): never {
  execution.invalid = true;
  throw e;
}
