import { SluiceError } from "../core/error.js";
import type { Database } from "../postgres/database.js";
import { awaitTask } from "../postgres/inspect.js";
import type { Listener } from "../postgres/listen.js";
import { inspectRun, type RunState, type RunStatus } from "../postgres/workflow/inspect.js";
import { Hint } from "./ended.js";

const ANNOUNCE_MS = 60_000;
const POLL_MS_MIN = 50;
const POLL_MS_MAX = 1_000;

/** Where to look, and where hints come from. */
export interface Post {
  readonly db: Database;
  readonly listener: Listener | null;
}

/** How long to wait. */
export interface Patience {
  readonly timeoutMs: number | null;
  readonly signal: AbortSignal | null;
}

/** Whether a run in this state is over, until somebody retries it. */
export function isOver(state: RunState): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}

/**
 * Waits beside a run for its end: announces itself, so that the end is told, and wakes at that hint or when
 * the time is over. Whoever waits looks for himself, for a hint may be lost.
 */
export class RunVigil {
  readonly #db: Database;
  readonly #id: string;
  readonly #hint: Hint;
  #announced = Number.NEGATIVE_INFINITY;

  constructor({ db, listener }: Post, run: string) {
    this.#db = db;
    // The database tells of a run under the negative of its id: no task has one.
    this.#id = `-${run}`;
    this.#hint = new Hint(listener, this.#id);
  }

  /** Before every look: what ends after the look is told then. */
  async announce(): Promise<void> {
    if (performance.now() - this.#announced <= ANNOUNCE_MS / 2) return;
    await awaitTask(this.#db, this.#id, ANNOUNCE_MS);
    this.#announced = performance.now();
  }

  /** Throws the signal's reason if it is aborted. */
  async wait(ms: number, signal: AbortSignal | null): Promise<void> {
    signal?.throwIfAborted();
    const wake = (): void => this.#hint.wake();
    signal?.addEventListener("abort", wake, { once: true });
    try {
      await this.#hint.wait(ms);
    } finally {
      signal?.removeEventListener("abort", wake);
    }
    signal?.throwIfAborted();
  }

  close(): void {
    this.#hint.close();
  }
}

/** Waits until a run is over. */
export async function runOver(post: Post, id: string, patience: Patience): Promise<RunStatus> {
  const { timeoutMs, signal } = patience;
  const until = timeoutMs === null ? Number.POSITIVE_INFINITY : performance.now() + timeoutMs;
  const vigil = new RunVigil(post, id);
  let pollMs = POLL_MS_MIN;
  try {
    for (;;) {
      signal?.throwIfAborted();
      await vigil.announce();
      const run = await inspectRun(post.db, id);
      if (run === null) throw notFound(id);
      if (isOver(run.state)) return run;
      const leftMs = until - performance.now();
      if (leftMs <= 0) throw stillAt(run, timeoutMs);
      await vigil.wait(Math.min(pollMs, leftMs), signal);
      pollMs = Math.min(pollMs * 1.5, POLL_MS_MAX);
    }
  } finally {
    vigil.close();
  }
}

export function notFound(id: string): SluiceError {
  return new SluiceError(
    "run_not_found",
    `run ${id} is not there: it was never committed, or its history is not kept`,
    { details: { id } },
  );
}

function stillAt({ id, name, state }: RunStatus, timeoutMs: number | null): SluiceError {
  return new SluiceError(
    "wait_timeout",
    `run ${id} of ${name} is still ${state} after ${timeoutMs} ms`,
    { details: { id } },
  );
}
