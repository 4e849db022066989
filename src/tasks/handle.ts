import { SluiceError } from "../core/error.js";
import type { Explanation } from "../core/explanation.js";
import { checkOptions } from "../core/option.js";
import { reasonText } from "../core/outcome.js";
import type { Queryable } from "../core/ports.js";
import type { CancelAnswer } from "../postgres/cancel.js";
import type { FailedAttempt, TaskStatus } from "../postgres/inspect.js";
import { checkTx } from "./tx.js";
import { checkSignal, waitBoundsOf, type WaitBounds, type WaitOptions } from "./wait.js";

/** A task as operators see it. */
export interface TaskDetails extends TaskStatus {
  /** The input, without what the option `redact` hides. */
  readonly input: unknown;
  /** The failed attempts, the oldest first. */
  readonly attempts: readonly FailedAttempt[];
}

/** The operations behind a handle. */
export interface TaskServices {
  inspect(id: string): Promise<TaskStatus | null>;
  attempts(id: string): Promise<FailedAttempt[]>;
  details(id: string): Promise<TaskDetails | null>;
  explain(id: string): Promise<Explanation | null>;
  cancel(id: string, reason: string | null, tx?: Queryable): Promise<CancelAnswer>;
  /** Resolves when the task has ended, or with null if its history is not kept. */
  ended(id: string, bounds: WaitBounds): Promise<TaskStatus | null>;
  watch(id: string, signal: AbortSignal | null): AsyncGenerator<TaskStatus, void, undefined>;
}

/** A handle on one enqueued task. */
export class TaskHandle<Output = unknown> {
  readonly id: string;
  /** Whether the task was found under its idempotency key instead of created. */
  readonly existed: boolean;
  readonly #services: TaskServices;

  /** @internal */
  constructor(services: TaskServices, id: string, existed = false) {
    this.#services = services;
    this.id = id;
    this.existed = existed;
  }

  /** Returns the current status of the task; null if its history is not kept. */
  status(): Promise<TaskStatus | null> {
    return this.#services.inspect(this.id);
  }

  /**
   * Returns the task with its input and its failed attempts; null if its history is not kept. Secrets in the input are
   * hidden: see the option `redact` of connect. Only the owner and reader roles may read inputs.
   */
  get(): Promise<TaskDetails | null> {
    return this.#services.details(this.id);
  }

  /**
   * Returns the failed attempts of the task, the oldest first: the last 10 that were retried, and the final failure.
   * An attempt that ended because its worker died is listed too, although it does not count.
   */
  attempts(): Promise<FailedAttempt[]> {
    return this.#services.attempts(this.id);
  }

  /** Explains why the task does not run; null if its history is not kept. */
  explain(): Promise<Explanation | null> {
    return this.#services.explain(this.id);
  }

  /**
   * Waits for the task to end and returns its result. Throws `task_failed`, `task_cancelled`, `wait_timeout`, the
   * signal's reason, or `result_not_kept` if the task ended while no one was waiting and left no history. Keeps waiting
   * while the database is unavailable. Logs a warning within 5 s if no live worker serves the type; `wait_timeout` says
   * why the task has not ended.
   */
  async result(options: WaitOptions = {}): Promise<Output> {
    checkOptions("result", options, ["timeoutMs", "signal"]);
    const task = await this.#services.ended(this.id, waitBoundsOf(options));
    if (task === null) throw notKept(this.id);
    if (task.state === "succeeded") return task.outcome as Output;
    throw task.state === "failed" ? failed(task) : cancelled(task);
  }

  /**
   * Yields the current status, then each new status after a change, until the task has ended:
   * `for await (const status of handle.watch())`. A slow consumer misses intermediate states. Throws `result_not_kept`
   * if the task does not exist, and the signal's reason. Keeps waiting while the database is unavailable.
   */
  watch(options: { readonly signal?: AbortSignal } = {}): AsyncGenerator<TaskStatus, void> {
    checkOptions("watch", options, ["signal"]);
    return this.#services.watch(this.id, checkSignal(options.signal));
  }

  /**
   * Cancels the task in any state. `asked` means that it is running: its signal is aborted with its worker's next
   * heartbeat. With `tx`, the cancellation takes effect if and only if the transaction commits.
   */
  async cancel(options: { readonly reason?: string; readonly tx?: Queryable } = {}): Promise<CancelAnswer> {
    checkOptions("cancel", options, ["reason", "tx"]);
    const { reason } = options;
    const tx = checkTx(options.tx);
    return this.#services.cancel(this.id, reason === undefined ? null : reasonText(reason), tx);
  }
}

/** The error for a task that does not exist. */
export function notKept(id: string): SluiceError {
  const message = `task ${id} does not exist: it ended and its history was not kept, or it was never committed`;
  return new SluiceError("result_not_kept", message);
}

function failed(task: TaskStatus): SluiceError {
  const error = task.outcome as { message?: string } | null;
  return new SluiceError("task_failed", `task ${task.id} failed: ${error?.message ?? "no reason given"}`, {
    details: { id: task.id, attempt: task.attempt, error },
  });
}

function cancelled(task: TaskStatus): SluiceError {
  const reason = (task.outcome as { reason?: string | null } | null)?.reason ?? null;
  return new SluiceError("task_cancelled", `task ${task.id} was cancelled${reason === null ? "" : `: ${reason}`}`, {
    details: { id: task.id, reason },
  });
}
