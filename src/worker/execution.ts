import type { Claim } from "../core/claim.js";
import type { SluiceError } from "../core/error.js";
import type { TaskHandler } from "../core/task.js";
import type { ClaimedTask } from "../postgres/step.js";
import type { ExecutionSpan } from "../trace/execution.js";
import type { Session } from "./session.js";

/** Any handler: its types matter only where it is declared. */
export type AnyHandler = TaskHandler<never, never>;

/**
 * One task in hand. It leaves `running` exactly once: finish() answers true to the first caller, and
 * whatever the handler does after that has no effect.
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
  /** When it times out; moved by ctx.extendLease. */
  deadlineMs: number;
  /** Why it was told to stop, once it was. */
  aborted: SluiceError | null = null;
  /** Null while nobody traces. */
  span: ExecutionSpan | null = null;
  /** The fan-outs that it waits for, once it does: then it ends so, whatever its handler makes of it. */
  waitsFor: string[] | null = null;
  /** The names of its maps, once it has made one or found one again. */
  maps: Set<string> | null = null;
  /** Its input is not what the task takes. */
  invalid = false;
  /** What can only fail again: the outcome of a map, which stays what it is. */
  final: unknown = null;
  /** Errors that its ctx gave it because the database was away. */
  #excused: WeakSet<object> | null = null;
  #controller: AbortController | null = null;
  #finished = false;
  /** Connections of its transactions; most executions have none. */
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

  /** Made when somebody looks: most handlers never do, and an AbortController is not cheap. */
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

  /** Tells the handler to stop, with the reason. The first reason stays. */
  abort(reason: SluiceError): void {
    if (this.aborted !== null) return;
    this.aborted = reason;
    this.#controller?.abort(reason);
  }

  /** If its handler lets this very error pass, the execution has not failed. Returns it. */
  excuse(e: unknown): unknown {
    if (typeof e === "object" && e !== null) (this.#excused ??= new WeakSet()).add(e);
    return e;
  }

  /** Not by what caused it: a handler that makes an error of its own of it has decided that this is a failure. */
  excused(e: unknown): boolean {
    return typeof e === "object" && e !== null && this.#excused?.has(e) === true;
  }

  /** Somebody to tell when the execution is given up while this is under way; returns how to take it back. */
  whenGivenUp(cut: () => void): () => void {
    const cuts = (this.#cuts ??= new Set());
    cuts.add(cut);
    return () => void cuts.delete(cut);
  }

  /** Its task goes on without it: what it still has open can come to nothing, and may never end by itself. */
  giveUp(): void {
    for (const cut of this.#cuts ?? []) cut();
  }

  finish(): boolean {
    if (this.#finished) return false;
    // guard: an execution ends once -> test/worker/properties.test.ts: "every claimed task is settled, released or lost with its lease, and none twice under one claim"
    /* guard:once */ this.#finished = true; /* end */
    return true;
  }
}

/** Calls the handler on its parsed input. Synchronous as far as schema and handler are. */
export function perform(execution: Execution, input: unknown, ctx: never): unknown {
  if (execution.span === null) return performHere(execution, input, ctx);
  return execution.span.within(() => performHere(execution, input, ctx));
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
