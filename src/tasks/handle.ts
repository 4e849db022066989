import { SluiceError } from "../core/error.js";
import type { Explanation } from "../core/explanation.js";
import { checkOptions } from "../core/option.js";
import { reasonText } from "../core/outcome.js";
import type { Queryable } from "../core/ports.js";
import type { CancelAnswer } from "../postgres/cancel.js";
import type { TaskStatus } from "../postgres/inspect.js";
import { checkTx } from "./tx.js";
import { patienceOf, type Patience, type PatienceOptions } from "./wait.js";

/** What a handle can ask. */
export interface TaskServices {
  inspect(id: string): Promise<TaskStatus | null>;
  explain(id: string): Promise<Explanation | null>;
  cancel(id: string, reason: string | null, tx?: Queryable): Promise<CancelAnswer>;
  /** Resolves when the task has ended, or with null when it is not kept. */
  ended(id: string, patience: Patience): Promise<TaskStatus | null>;
}

/** One enqueued task. */
export class TaskHandle<Output = unknown> {
  readonly id: string;
  /** It was found under its idempotency key instead of made. */
  readonly existed: boolean;
  readonly #services: TaskServices;

  /** @internal */
  constructor(services: TaskServices, id: string, existed = false) {
    this.#services = services;
    this.id = id;
    this.existed = existed;
  }

  /** The task as it stands; null if its history is not kept. */
  status(): Promise<TaskStatus | null> {
    return this.#services.inspect(this.id);
  }

  /** Why it does not run; null if its history is not kept. */
  explain(): Promise<Explanation | null> {
    return this.#services.explain(this.id);
  }

  /**
   * Waits for the end and returns the result. Throws `task_failed`, `task_cancelled`,
   * `wait_timeout`, the reason of the signal, or `result_not_kept` when the task ended unwatched and left no
   * history. It goes on waiting while the database is away.
   */
  async result(options: PatienceOptions = {}): Promise<Output> {
    checkOptions("result", options, ["timeoutMs", "signal"]);
    const task = await this.#services.ended(this.id, patienceOf(options));
    if (task === null) {
      throw new SluiceError(
        "result_not_kept",
        `task ${this.id} is not there: it has ended and left no history, or was never committed`,
      );
    }
    if (task.state === "succeeded") return task.outcome as Output;
    throw task.state === "failed" ? failed(task) : cancelled(task);
  }

  /**
   * Cancels the task in any state. `asked` means that it runs: it hears of it with its worker's next
   * heartbeat. In a transaction the cancel counts if and only if it commits.
   */
  async cancel(options: { readonly reason?: string; readonly tx?: Queryable } = {}): Promise<CancelAnswer> {
    checkOptions("cancel", options, ["reason", "tx"]);
    const { reason } = options;
    const tx = checkTx(options.tx);
    return this.#services.cancel(this.id, reason === undefined ? null : reasonText(reason), tx);
  }
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
