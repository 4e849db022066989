import type { Execution } from "../worker/execution.js";
import type { FaultKind } from "./faults.js";

/**
 * One execution of one task, from its claim until there is nothing left to wait for. An execution is over when it has
 * an outcome and its handler has ended; a handler that ignores its abort is left behind, as in a worker. After a crash
 * or a lost lease, only the end of the handler counts.
 */
export class Play {
  readonly fault: FaultKind | null;
  /** The error that the handler threw, if any. */
  error: unknown;
  readonly over: Promise<void>;
  #execution: Execution | undefined;
  #entered = false;
  #ended = false;
  #told = false;
  #finish!: () => void;

  constructor(fault: FaultKind | null) {
    this.fault = fault;
    this.over = new Promise((resolve) => (this.#finish = resolve));
  }

  /** Sets the execution; undefined if it was over as soon as it began. */
  follow(execution: Execution | undefined): void {
    this.#execution = execution;
  }

  /** The handler has begun. */
  enter(): void {
    this.#entered = true;
  }

  /** The handler has ended. */
  end(): void {
    this.#ended = true;
    this.#look();
  }

  /** There is an outcome, or a transaction has recorded it. */
  tell(): void {
    this.#told = true;
    this.#look();
  }

  #look(): void {
    if (this.#isOver()) this.#finish();
  }

  #isOver(): boolean {
    // An input that does not fit its schema fails before a handler runs.
    if (!this.#entered) return this.#told;
    if (this.fault === "crash" || this.fault === "lose-lease") return this.#ended;
    return this.#told && (this.#ended || (this.#execution?.aborted ?? null) !== null);
  }
}
