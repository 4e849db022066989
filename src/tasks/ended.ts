import { SluiceError } from "../core/error.js";
import { terminal } from "../core/state.js";
import { awaitTask, inspect, type TaskStatus } from "../postgres/inspect.js";
import type { Listener } from "../postgres/listen.js";
import { Wait, type Patience, type Post } from "./wait.js";

/** How long a wait lasts before it looks again for the first time. */
export const POLL_MS_MIN = 50;
const POLL_MS_MAX = 1_000;
const ANNOUNCE_MS = 60_000;

/** Waits until a task has ended. Null if it is not there. */
export async function ended(post: Post, id: string, patience: Patience): Promise<TaskStatus | null> {
  const look = (): Promise<TaskStatus | null> => inspect(post.db, id);
  // A task that is over already needs no announcement.
  const found = await new Wait(post.db, patience, `task ${id}`).ask(look);
  if (found === null || terminal(found.state)) return found;
  return new AnnouncedWait(post, { id, what: `task ${id}` }, patience).end({
    look,
    isOver: (task) => task === null || terminal(task.state),
    late: (task) =>
      new SluiceError("wait_timeout", `task ${id} is still ${task?.state} after ${patience.timeoutMs} ms`),
  });
}

/** What is waited for. */
interface Subject {
  /** Under which its end is announced. */
  readonly id: string;
  /** For messages. */
  readonly what: string;
}

/** How to see an end. */
interface EndLook<T> {
  readonly look: () => Promise<T>;
  readonly isOver: (seen: T) => boolean;
  /** What to throw when the time is over and this is not. */
  readonly late: (seen: T) => SluiceError;
}

/**
 * A wait that announces itself, so that the end is told and the outcome kept for a moment. It wakes at that hint, but a
 * hint may be lost: the truth is what it sees when it looks again, at a growing interval.
 */
export class AnnouncedWait {
  readonly #post: Post;
  readonly #id: string;
  readonly #signal: AbortSignal | null;
  readonly #hint: Hint;
  readonly #wait: Wait;
  #announcedMs = Number.NEGATIVE_INFINITY;

  constructor(post: Post, subject: Subject, patience: Patience) {
    this.#post = post;
    this.#id = subject.id;
    this.#signal = patience.signal;
    this.#wait = new Wait(post.db, patience, subject.what);
    this.#hint = new Hint(post.listener, subject.id);
  }

  /** Looks until it is over, then closes. */
  async end<T>({ look, isOver, late }: EndLook<T>): Promise<T> {
    try {
      for (let pollMs = POLL_MS_MIN; ; pollMs = nextPollMs(pollMs, this.#post.listener)) {
        const seen = await this.look(look);
        if (isOver(seen)) return seen;
        const { leftMs } = this.#wait;
        if (leftMs <= 0) throw late(seen);
        await this.pause(Math.min(pollMs, leftMs));
      }
    } finally {
      this.close();
    }
  }

  /** Looks, and announces itself before: what ends after the look is told then. */
  async look<T>(question: () => Promise<T>): Promise<T> {
    if (performance.now() - this.#announcedMs > ANNOUNCE_MS / 2) {
      await this.#wait.ask(() => awaitTask(this.#post.db, this.#id, ANNOUNCE_MS));
      this.#announcedMs = performance.now();
    }
    return this.#wait.ask(question);
  }

  /** Until a hint, or so long. Throws the signal's reason if it is aborted. */
  pause(ms: number): Promise<void> {
    return this.#hint.wait(ms, this.#signal);
  }

  close(): void {
    this.#hint.close();
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
class Hint {
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
