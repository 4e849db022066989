// Fewer than these are not worth a statement of their own, if there is no time to be won by it.
const TOGETHER = 20;

/**
 * How many outcomes go into one statement. What has ended at the same moment is spread over the connections that
 * are free: each waits for less. But a few tasks that take no time are better off together, because a
 * statement costs more than what is in it.
 */
export class Shares {
  readonly #most: number;
  /** Whether tasks take no time: they end in the turn in which they were started. */
  #brief = false;
  #started = 0;
  #completedBefore = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** So many are about to be started; so many have completed until now. */
  starting(tasks: number, completed: number): void {
    if (this.#started === 0) this.#completedBefore = completed;
    this.#started += tasks;
  }

  /** The turn in which they were started is over. */
  turnEnded(completed: number): void {
    if (this.#started === 0) return;
    this.#brief = completed - this.#completedBefore >= this.#started;
    this.#started = 0;
  }

  /** Of so many that wait, for one of so many connections that are free. */
  of(waiting: number, connections: number): number {
    const share = Math.ceil(waiting / connections);
    return Math.min(this.#brief ? Math.max(share, TOGETHER) : share, waiting, this.#most);
  }
}
