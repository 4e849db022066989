import { SluiceError } from "../core/error.js";
import { terminal } from "../core/state.js";
import { within } from "../core/within.js";
import { explainTask } from "../explain/explain.js";
import type { Database } from "../postgres/database.js";
import { awaitTask, inspect, type TaskStatus } from "../postgres/inspect.js";
import { NOTIFICATION, type Listener } from "../postgres/listen.js";
import { UNSERVED_MS, type UnservedWarning } from "./unserved.js";
import { Wait, type WaitBounds, type WaitServices } from "./wait.js";

/** The delay before the first poll of a wait. */
export const POLL_MS_MIN = 50;
const POLL_MS_MAX = 1_000;
const ANNOUNCE_MS = 60_000;

// How long a wait that has timed out may take to find out why.
const EXPLAIN_MS_MAX = 500;

/** Waits until a task has ended. Null if it does not exist. */
export async function ended(
  services: WaitServices & { readonly unserved: UnservedWarning },
  id: string,
  bounds: WaitBounds,
): Promise<TaskStatus | null> {
  const look = (): Promise<TaskStatus | null> => inspect(services.db, id);
  // A task that has already ended needs no announcement.
  const found = await new Wait(services.db, bounds, `task ${id}`).ask(look);
  if (found === null || terminal(found.state)) return found;
  return new AnnouncedWait(services, { id, what: `task ${id}` }, bounds).end({
    look,
    isOver: (task) => task === null || terminal(task.state),
    onLong: (task) => void (task !== null && services.unserved.check(task)),
    late: (task) => stillAt(services.db, id, task, bounds.timeoutMs),
  });
}

/** The error of a wait that has timed out, with the reason why the task has not ended, if the database says it in time. */
async function stillAt(
  db: Database,
  id: string,
  task: TaskStatus | null,
  timeoutMs: number | null,
): Promise<SluiceError> {
  const asked = explainTask(db, id).catch(() => null);
  const explained = (await within(asked, EXPLAIN_MS_MAX)) ? await asked : null;
  const why = explained === null || terminal(explained.state) ? null : explained;
  const message = `task ${id} is still ${task?.state} after ${timeoutMs} ms${why === null ? "" : `: ${why.message}`}`;
  const details = { id, state: task?.state, reason: why?.message ?? null, reasons: why?.reasons ?? [] };
  return new SluiceError("wait_timeout", message, { details });
}

/** The thing a wait is for. */
interface Subject {
  /** The id under which its end is announced. */
  readonly id: string;
  /** Its description in messages. */
  readonly what: string;
}

/** How to detect the end. */
interface EndLook<T> {
  readonly look: () => Promise<T>;
  readonly isOver: (seen: T) => boolean;
  /** Creates the error to throw when the timeout expires before the end. */
  readonly late: (seen: T) => SluiceError | Promise<SluiceError>;
  /** Called once if the wait takes long. */
  readonly onLong?: (seen: T) => void;
}

/**
 * A wait that registers itself in the database, so that the end is announced and the outcome is kept for a short time.
 * The announcement wakes the wait, but it may get lost: only polling, at a growing interval, is authoritative.
 */
export class AnnouncedWait {
  readonly #services: WaitServices;
  readonly #id: string;
  readonly #signal: AbortSignal | null;
  readonly #hint: Hint;
  readonly #wait: Wait;
  #announcedMs = Number.NEGATIVE_INFINITY;

  constructor(services: WaitServices, subject: Subject, bounds: WaitBounds) {
    this.#services = services;
    this.#id = subject.id;
    this.#signal = bounds.signal;
    this.#wait = new Wait(services.db, bounds, subject.what);
    this.#hint = new Hint(services.listener, subject.id);
  }

  /** Polls until the subject has ended, then closes. */
  async end<T>({ look, isOver, late, onLong }: EndLook<T>): Promise<T> {
    const longMs = performance.now() + UNSERVED_MS;
    let isLong = false;
    try {
      for (let pollMs = POLL_MS_MIN; ; pollMs = nextPollMs(pollMs, this.#services.listener)) {
        const seen = await this.look(look);
        if (isOver(seen)) return seen;
        if (!isLong && performance.now() >= longMs) {
          isLong = true;
          onLong?.(seen);
        }
        const { leftMs } = this.#wait;
        if (leftMs <= 0) throw await late(seen);
        await this.pause(Math.min(pollMs, leftMs));
      }
    } finally {
      this.close();
    }
  }

  /** Polls, and registers the wait first: an end after the poll is then announced. */
  async look<T>(question: () => Promise<T>): Promise<T> {
    if (performance.now() - this.#announcedMs > ANNOUNCE_MS / 2) {
      await this.#wait.ask(() => awaitTask(this.#services.db, this.#id, ANNOUNCE_MS));
      this.#announcedMs = performance.now();
    }
    return this.#wait.ask(question);
  }

  /** Waits for an announcement, at most `ms`. Throws the signal's reason if it is aborted. */
  pause(ms: number): Promise<void> {
    return this.#hint.wait(ms, this.#signal);
  }

  close(): void {
    this.#hint.close();
  }
}

/**
 * Returns how long to wait for an announcement before the next poll. A statement that began before the registration
 * does not announce an end; the first poll after it finds that end. Where announcements arrive, later polls can be
 * infrequent.
 */
export function nextPollMs(pollMs: number, listener: Pick<Listener, "listens"> | null): number {
  return listener?.listens === true ? POLL_MS_MAX : Math.min(pollMs * 1.5, POLL_MS_MAX);
}

/** Wakes a wait early when the listener receives the announcement for this id. */
class Hint {
  readonly #stop: () => void;
  #heard = false;
  #wake: () => void = () => {};

  constructor(listener: Listener | null, id: string) {
    const stops =
      listener === null
        ? []
        : [listener.onPayload(`${NOTIFICATION.done}:${id}`, () => this.wake()), listener.need({ lingers: true })];
    this.#stop = (): void => stops.forEach((stop) => stop());
  }

  /** Wakes the current wait, or else the next one. */
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
        // An announcement between two waits counts for the next one.
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
