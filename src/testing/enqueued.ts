import { SluiceError } from "../core/error.js";
import { checkOptions } from "../core/option.js";
import type { Queryable } from "../core/ports.js";
import type { TaskState } from "../core/state.js";
import type { TaskTerms } from "../core/terms.js";
import type { Database } from "../postgres/database.js";
import { enqueuedTasks, type EnqueuedRow } from "../postgres/rehearse.js";
import { checkTx } from "../tasks/tx.js";

/** An enqueued task: its input and the terms that were fixed at enqueue. */
export interface EnqueuedTask<Input = unknown> {
  readonly id: string;
  /** The stored JSON, before the schema parses it. */
  readonly input: Input;
  readonly state: TaskState;
  /** Attempts used. */
  readonly attempt: number;
  readonly priority: number;
  /** The order key, without the scope; null if the task has none. */
  readonly order: string | null;
  /** The limits that the task passes, each with its key. Excludes `concurrency`, which belongs to the type. */
  readonly limits: readonly { readonly limit: string; readonly key: string | null }[];
  /** The task does not run before this time; null if it is not scheduled. */
  readonly runAt: Date | null;
  readonly idempotencyKey: string | null;
}

/** Options of enqueued(). */
export interface EnqueuedOptions {
  /** A transaction of yours. With it, the list includes tasks that the transaction has not committed yet. */
  readonly tx?: Queryable | undefined;
}

const TASKS_MAX = 10_000;

/** Every task of a type that the database still holds, oldest first, in any state. */
export async function enqueued<Input>(
  db: Database,
  task: TaskTerms<Input>,
  options: EnqueuedOptions,
): Promise<readonly EnqueuedTask<Input>[]> {
  if (typeof (task as Partial<TaskTerms> | null)?.place !== "function")
    throw new SluiceError("unknown_task", "enqueued needs a task made by task(name, options)");
  checkOptions("enqueued", options, ["tx"]);
  const rows = await enqueuedTasks(db, task, TASKS_MAX + 1, checkTx(options.tx));
  if (rows.length > TASKS_MAX) {
    throw new SluiceError(
      "invalid_option",
      `there are more than ${TASKS_MAX} tasks of type ${task.type}: too many to list`,
    );
  }
  return rows.map((row) => taskOf<Input>(row));
}

const SCOPE_END = "\u001f";

function taskOf<Input>(row: EnqueuedRow): EnqueuedTask<Input> {
  return {
    ...row,
    state: row.state as TaskState,
    input: row.input as Input,
    order: row.order === null ? null : row.order.slice(row.order.indexOf(SCOPE_END) + 1),
    runAt: row.runAt === null ? null : new Date(row.runAt),
  };
}
