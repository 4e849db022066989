/** Claims start at this size if none is set. */
export const BATCH_START = 50;
// And grow to this.
const BATCH_MAX = 500;

// A claim with less than this share of what it asked for has come to the end of the backlog. One with more may have
// met a counter that another claim had in hand.
const SHORT_SHARE = 0.25;
// Tasks that stay longer than this in a worker might have started sooner in another one.
const IN_HAND_MS_MAX = 50;

/** What a claim was answered with, and how the worker stands then. */
interface Answer {
  readonly want: number;
  readonly claimed: number;
  /** Tasks in this worker, and how many it has completed so far. */
  readonly inHand: number;
  readonly completed: number;
  readonly nowMs: number;
}

/**
 * The most tasks of one claim. A size that is set is a hard cap. Without one, claims double while they come back full
 * and tasks are brief: a statement costs more than the tasks in it, so a backlog of brief tasks drains twice as fast in
 * large claims. A claim that comes back with little, or tasks that stay long, end that: then even shares matter more.
 */
export class BatchSize {
  readonly #fixed: number | undefined;
  #max = BATCH_START;
  #sinceMs = 0;
  #completed = 0;

  constructor(fixed: number | undefined) {
    this.#fixed = fixed;
  }

  get max(): number {
    return this.#fixed ?? this.#max;
  }

  learn({ want, claimed, inHand, completed, nowMs }: Answer): void {
    if (this.#fixed !== undefined) return;
    if (claimed < want * SHORT_SHARE) this.#max = BATCH_START;
    if (claimed < want || want < this.#max) return;
    const [ms, done] = [nowMs - this.#sinceMs, completed - this.#completed];
    [this.#sinceMs, this.#completed] = [nowMs, completed];
    if (done === 0) return;
    // How long a task stays, by Little's law.
    const inHandMs = (inHand * ms) / done;
    this.#max = inHandMs > IN_HAND_MS_MAX ? BATCH_START : Math.min(BATCH_MAX, 2 * this.#max);
  }
}
