import { SluiceError } from "../core/error.js";
import { awaitTask } from "../postgres/inspect.js";
import { inspectRun, type RunState, type RunStatus } from "../postgres/workflow/inspect.js";
import { Hint, nextPollMs, POLL_MS_MIN } from "../tasks/ended.js";
import { Wait, type Patience, type Post } from "../tasks/wait.js";

const ANNOUNCE_MS = 60_000;

/** Whether a run in this state is over, until somebody retries it. */
export function isOver(state: RunState): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled";
}

/**
 * Waits beside a run for its end: announces itself, so that the end is told, and wakes at that hint or when
 * the time is over. Whoever waits looks for himself, for a hint may be lost.
 */
export class RunVigil {
  readonly #post: Post;
  readonly #id: string;
  readonly #hint: Hint;
  readonly #wait: Wait;
  readonly #signal: AbortSignal | null;
  #announced = Number.NEGATIVE_INFINITY;

  constructor(post: Post, run: string, patience: Patience) {
    this.#post = post;
    this.#wait = new Wait(post.db, patience, `run ${run}`);
    this.#signal = patience.signal;
    // The database tells of a run under the negative of its id: no task has one.
    this.#id = `-${run}`;
    this.#hint = new Hint(post.listener, this.#id);
  }

  get leftMs(): number {
    return this.#wait.leftMs;
  }

  /** Looks, and announces itself before: what ends after the look is told then. */
  async look<T>(question: () => Promise<T>): Promise<T> {
    if (performance.now() - this.#announced > ANNOUNCE_MS / 2) {
      await this.#wait.ask(() => awaitTask(this.#post.db, this.#id, ANNOUNCE_MS));
      this.#announced = performance.now();
    }
    return this.#wait.ask(question);
  }

  /** Throws the signal's reason if it is aborted. */
  wait(ms: number): Promise<void> {
    return this.#hint.wait(ms, this.#signal);
  }

  close(): void {
    this.#hint.close();
  }
}

/** Waits until a run is over. */
export async function runOver(post: Post, id: string, patience: Patience): Promise<RunStatus> {
  const vigil = new RunVigil(post, id, patience);
  let pollMs = POLL_MS_MIN;
  try {
    for (;;) {
      const run = await vigil.look(() => inspectRun(post.db, id));
      if (run === null) throw notFound(id);
      if (isOver(run.state)) return run;
      const { leftMs } = vigil;
      if (leftMs <= 0) throw stillAt(run, patience.timeoutMs);
      await vigil.wait(Math.min(pollMs, leftMs));
      pollMs = nextPollMs(pollMs, post.listener);
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
  return new SluiceError("wait_timeout", `run ${id} of ${name} is still ${state} after ${timeoutMs} ms`, {
    details: { id },
  });
}
