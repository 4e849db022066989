// Fewer outcomes than this are not worth a statement of their own, unless that saves time.
const TOGETHER = 20;

/**
 * How many outcomes go into one statement. Outcomes that end at the same moment are spread over the free connections,
 * so that each waits for less. A few tasks that take no time are better sent together, because a statement costs more
 * than its contents.
 */
export class Shares {
  readonly #most: number;
  /** Whether tasks take no time: they end in the tick of the event loop in which they start. */
  #brief = false;
  #started = 0;
  #completedBefore = 0;

  constructor(most: number) {
    this.#most = most;
  }

  /** `tasks` tasks are about to start; `completed` tasks have completed so far. */
  starting(tasks: number, completed: number): void {
    if (this.#started === 0) this.#completedBefore = completed;
    this.#started += tasks;
  }

  /** The tick of the event loop in which the tasks started is over. */
  tickEnded(completed: number): void {
    if (this.#started === 0) return;
    this.#brief = completed - this.#completedBefore >= this.#started;
    this.#started = 0;
  }

  /** The share of the waiting outcomes for one of the free connections. */
  of(waiting: number, connections: number): number {
    const share = Math.ceil(waiting / connections);
    return Math.min(this.#brief ? Math.max(share, TOGETHER) : share, waiting, this.#most);
  }
}
