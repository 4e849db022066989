import { SluiceError } from "../core/error.js";
import { terminal } from "../core/state.js";
import { awaitTask, inspect, type TaskStatus } from "../postgres/inspect.js";
import type { Listener } from "../postgres/listen.js";
import { Wait, type Patience, type Post } from "./wait.js";

/** How long a wait lasts before it looks again for the first time. */
export const POLL_MS_MIN = 50;
const POLL_MS_MAX = 1_000;
const ANNOUNCE_MS = 60_000;

/**
 * Waits until a task has ended: announces itself, so that the outcome is told and kept for a moment,
 * then looks again at every hint and, as the truth, at a growing interval.
 */
export async function ended({ db, listener }: Post, id: string, patience: Patience): Promise<TaskStatus | null> {
  const { timeoutMs, signal } = patience;
  const wait = new Wait(db, patience, `task ${id}`);
  const found = await wait.ask(() => inspect(db, id));
  if (found === null || terminal(found.state)) return found;
  let announced = Number.NEGATIVE_INFINITY;
  let pollMs = POLL_MS_MIN;
  const hint = new Hint(listener, id);
  try {
    for (;;) {
      if (performance.now() - announced > ANNOUNCE_MS / 2) {
        await wait.ask(() => awaitTask(db, id, ANNOUNCE_MS));
        announced = performance.now();
      }
      const task = await wait.ask(() => inspect(db, id));
      if (task === null || terminal(task.state)) return task;
      const { leftMs } = wait;
      if (leftMs <= 0) throw new SluiceError("wait_timeout", `task ${id} is still ${task.state} after ${timeoutMs} ms`);
      await hint.wait(Math.min(pollMs, leftMs), signal);
      pollMs = nextPollMs(pollMs, listener);
    }
  } finally {
    hint.close();
  }
}

/**
 * How long to wait for a hint before the next look. A statement that began before the announcement tells nobody of an
 * end; the first look after that finds it, and where hints arrive the others need not come soon.
 */
export function nextPollMs(pollMs: number, listener: Pick<Listener, "hears"> | null): number {
  return listener?.hears === true ? POLL_MS_MAX : Math.min(pollMs * 1.5, POLL_MS_MAX);
}

/** Wakes early when the listener hears of the end of what has this id. */
export class Hint {
  readonly #stop: () => void;
  #heard = false;
  #wake: () => void = () => {};

  constructor(listener: Listener | null, id: string) {
    const stops =
      listener === null ? [] : [listener.onPayload(`done:${id}`, () => this.wake()), listener.need({ lingers: true })];
    this.#stop = (): void => stops.forEach((stop) => stop());
  }

  /** Ends the wait that is under way, or else the next. */
  wake(): void {
    this.#heard = true;
    this.#wake();
  }

  /** Throws the signal's reason if it is aborted. */
  async wait(ms: number, signal: AbortSignal | null): Promise<void> {
    signal?.throwIfAborted();
    const wake = (): void => this.wake();
    signal?.addEventListener("abort", wake, { once: true });
    try {
      await this.#wait(ms);
    } finally {
      signal?.removeEventListener("abort", wake);
    }
    signal?.throwIfAborted();
  }

  #wait(ms: number): Promise<void> {
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
