import { isOutage } from "../postgres/errors.js";
import type { Execution } from "./execution.js";

const DELAY_MS_MIN = 250;
// Work resumes within 10 s of the database's return.
const DELAY_MS_MAX = 8_000;
// How many tasks are tracked. The worker that hands a task back without using an attempt counts the outages of the
// task; another worker starts from zero.
const TASKS_MAX = 10_000;
// About five minutes. A task that meets more in a row may be their cause: a statement that always breaks its
// connection.
export const OUTAGES_MAX = 50;

/** Awaits a database request of an execution. An outage is not a failure of the execution. */
export async function excusing<T>(execution: Execution, asked: Promise<T>): Promise<T> {
  try {
    return await asked;
  } catch (e) {
    throw isOutage(e) ? execution.excuse(e) : e;
  }
}

/**
 * How long a task waits after an outage. Outages use no attempt, so only this delay keeps the task from running again
 * and again: it doubles with every outage that the task meets in a row, and the number of outages is bounded.
 */
export class Outages {
  readonly #met = new Map<string, number>();

  /** Whether one more outage uses no attempt. */
  excuses(task: string): boolean {
    // guard: outages of a task in a row are bounded -> test/worker/executions.test.ts: "a task that fails in 50 outages in a row uses an attempt"
    return /* guard:bounded */ (this.#met.get(task) ?? 0) < OUTAGES_MAX; /* end */
  }

  delayMs(task: string): number {
    const met = this.#met.get(task) ?? 0;
    // Insert it anew, so that the map stays sorted by age and the oldest entry is evicted.
    this.#met.delete(task);
    const oldest = this.#met.size < TASKS_MAX ? undefined : this.#met.keys().next().value;
    if (oldest !== undefined) this.#met.delete(oldest);
    this.#met.set(task, met + 1);
    // guard: an outage is tried again ever more slowly -> test/worker/outage.test.ts: "the delay after an outage doubles per task up to 8 s, and restarts after the outage"
    const full = Math.min(DELAY_MS_MAX, DELAY_MS_MIN /* guard:back-off */ * 2 ** Math.min(met, 10) /* end */);
    return full * (0.5 + Math.random() / 2);
  }

  /** The task ended in another way. */
  over(task: string): void {
    if (this.#met.size > 0) this.#met.delete(task);
  }
}
