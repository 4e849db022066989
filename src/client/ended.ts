import { SluiceError } from "../core/error.js";
import { terminal } from "../core/state.js";
import type { Database } from "../postgres/database.js";
import { awaitTask, inspect, type TaskStatus } from "../postgres/inspect.js";
import type { Listener } from "../postgres/listen.js";

const POLL_MS_MIN = 50;
const POLL_MS_MAX = 1_000;
const ANNOUNCE_MS = 60_000;

/**
 * Waits until a task has ended: announces itself, so that the outcome is told and kept for a moment,
 * then looks again at every hint and, as the truth, at a growing interval.
 */
export async function ended(
  db: Database,
  listener: Listener | null,
  id: string,
  timeoutMs: number | null,
): Promise<TaskStatus | null> {
  const found = await inspect(db, id);
  if (found === null || terminal(found.state)) return found;
  const until = timeoutMs === null ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs;
  let announced = Number.NEGATIVE_INFINITY;
  let pollMs = POLL_MS_MIN;
  const hint = new Hint(listener, id);
  try {
    for (;;) {
      if (performance.now() - announced > ANNOUNCE_MS / 2) {
        await awaitTask(db, id, ANNOUNCE_MS);
        announced = performance.now();
      }
      const task = await inspect(db, id);
      if (task === null || terminal(task.state)) return task;
      const leftMs = until - performance.now();
      if (leftMs <= 0)
        throw new SluiceError(
          "wait_timeout",
          `task ${id} is still ${task.state} after ${timeoutMs} ms`,
        );
      await hint.wait(Math.min(pollMs, leftMs));
      pollMs = Math.min(pollMs * 1.5, POLL_MS_MAX);
    }
  } finally {
    hint.close();
  }
}

/** Wakes early when the listener hears of the end of what has this id. */
export class Hint {
  readonly #stop: () => void;
  #heard = false;
  #wake: () => void = () => {};

  constructor(listener: Listener | null, id: string) {
    const hear = (payload: string): void => {
      if (payload === `done:${id}` || payload === "again") this.wake();
    };
    this.#stop = listener?.on(hear) ?? ((): void => {});
  }

  /** Ends the wait that is under way, or else the next. */
  wake(): void {
    this.#heard = true;
    this.#wake();
  }

  wait(ms: number): Promise<void> {
    if (this.#heard) {
      this.#heard = false;
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      const done = (): void => {
        clearTimeout(timer);
        // What is heard between two waits belongs to the next.
        this.#heard = false;
        this.#wake = (): void => {};
        resolve();
      };
      const timer = setTimeout(done, ms);
      this.#wake = done;
    });
  }

  close(): void {
    this.#stop();
  }
}
