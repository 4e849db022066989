import type { ErrorCode } from "../core/error.js";
import { describeError } from "../core/json.js";
import { checkFunction, checkOneOf } from "../core/option.js";
import type { Logger } from "../core/ports.js";

/** The task and the worker that an event is about. */
interface TaskEvent {
  /** The task's id. */
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  /** The number of the attempt, starting at 1. */
  readonly attempt: number;
  /** The name of the worker. */
  readonly worker: string;
}

/** The event of an execution. */
interface ExecutionEvent extends TaskEvent {
  /** From the start of the handler to the end of the execution. */
  readonly durationMs: number;
}

/** A task has succeeded. */
export type SucceededEvent = ExecutionEvent;

/** A task has failed and is not retried. */
export interface FailedEvent extends ExecutionEvent {
  /** The value that the handler threw, or the SluiceError of a timeout. */
  readonly error: unknown;
}

/** A task has failed and runs again. */
export interface RetryingEvent extends ExecutionEvent {
  /** The value that the handler threw, or the SluiceError of a timeout. */
  readonly error: unknown;
  readonly willRetryAt: Date;
}

/** A running task was cancelled, by its handler or by a request. */
export interface CancelledEvent extends ExecutionEvent {
  readonly reason: string | null;
}

/** A handler does not end when it should. Not an outcome: the outcome of the task is an event of its own. */
export interface StalledEvent extends ExecutionEvent {
  /**
   * - timeout: the handler has exceeded its timeout, and its signal is aborted.
   * - abort_ignored: the handler still runs a second after its signal was aborted; its task continues without it.
   */
  readonly cause: "timeout" | "abort_ignored";
  /** Why its signal was aborted: `timeout`, `task_cancelled`, `lease_lost` or `stopped`. */
  readonly abortCode: ErrorCode;
}

/** A task that this process has claimed had to wait, because a limit was full. At most one per limit in 10 seconds. */
export interface LimitFullEvent extends TaskEvent {
  /** The name of the limit; of a task's own `concurrency` the type. */
  readonly limit: string;
  /** Whether one key of the limit was full, not its total. */
  readonly perKey: boolean;
  /** How long the task had been due when it was claimed; null if it was tried before. */
  readonly waitMs: number | null;
}

/** The events of a process, by name. */
export interface SluiceEvents {
  readonly succeeded: SucceededEvent;
  readonly failed: FailedEvent;
  readonly retrying: RetryingEvent;
  readonly cancelled: CancelledEvent;
  readonly stalled: StalledEvent;
  readonly limitFull: LimitFullEvent;
}

export type SluiceEventName = keyof SluiceEvents;

type Listener = (event: never) => unknown;
type Listeners = Record<SluiceEventName, readonly Listener[]>;

const NAMES = ["succeeded", "failed", "retrying", "cancelled", "stalled", "limitFull"] as const;

/** The listeners of a process. What a listener throws is logged and reaches no one. */
export class Events {
  readonly #log: Logger;
  // Replaced at every change, so that an event under way reaches the listeners it began with.
  readonly #listeners: Listeners = {
    succeeded: [],
    failed: [],
    retrying: [],
    cancelled: [],
    stalled: [],
    limitFull: [],
  };

  constructor(log: Logger) {
    this.#log = log;
  }

  /** Whether anyone listens. Check this before creating an event. */
  wants(name: SluiceEventName): boolean {
    return this.#listeners[name].length > 0;
  }

  /** Returns a function that removes the listener. */
  on<Name extends SluiceEventName>(name: Name, listener: (event: SluiceEvents[Name]) => unknown): () => void {
    checkOneOf("event", name, NAMES);
    checkFunction("listener", listener);
    // A function of its own, so that a listener that was added twice is removed once.
    const mine: Listener = (event) => listener(event);
    this.#listeners[name] = [...this.#listeners[name], mine];
    return () => void (this.#listeners[name] = this.#listeners[name].filter((other) => other !== mine));
  }

  /** Never throws. */
  emit<Name extends SluiceEventName>(name: Name, event: SluiceEvents[Name]): void {
    for (const listener of this.#listeners[name]) {
      try {
        const out = listener(event as never);
        if (isThenable(out)) Promise.resolve(out).catch((e: unknown) => this.#tell(name, e));
      } catch (e) {
        // guard: a listener breaks nothing -> test/worker/events.test.ts: "a listener that throws or rejects is logged, and breaks neither other listeners nor the worker"
        /* guard:throws */ this.#tell(name, e); /* end */
      }
    }
  }

  #tell(event: SluiceEventName, e: unknown): void {
    this.#log.error("a listener failed", { event, error: describeError(e).message });
  }
}

function isThenable(value: unknown): value is PromiseLike<unknown> {
  return typeof value === "object" && value !== null && typeof (value as { then?: unknown }).then === "function";
}
