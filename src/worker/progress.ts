import { SluiceError } from "../core/error.js";
import { storable } from "../core/json.js";
import { quote } from "../core/quote.js";
import type { Clock, Logger } from "../core/ports.js";
import { tellTrouble } from "../postgres/errors.js";
import type { ProgressReport } from "../postgres/progress.js";
import type { Execution } from "./execution.js";

const PROGRESS_BYTES_MAX = 16_384;
const INTERVAL_MS = 1_000;

interface ProgressOptions {
  readonly clock: Clock;
  readonly log: Logger;
  send(reports: readonly ProgressReport[]): Promise<void>;
}

/**
 * Collects what handlers report, and stores the latest of each execution at most once per second, all in one statement.
 * A worker whose handlers report nothing does nothing here.
 */
export class ProgressReporter {
  readonly #o: ProgressOptions;
  readonly #latest = new Map<Execution, ProgressReport>();
  #timer: NodeJS.Timeout | null = null;
  #sentMs = Number.NEGATIVE_INFINITY;

  constructor(options: ProgressOptions) {
    this.#o = options;
  }

  report(execution: Execution, fraction: unknown, data: unknown): void {
    const { claim } = execution;
    this.#latest.set(execution, { claim, fraction: checkFraction(fraction), data: dataOf(data) });
    if (this.#timer !== null) return;
    const waitMs = Math.max(0, this.#sentMs + INTERVAL_MS - this.#o.clock.now());
    this.#timer = setTimeout(() => void this.#send(), waitMs).unref();
  }

  stop(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#latest.clear();
  }

  async #send(): Promise<void> {
    // An execution that has ended reports no more, and a claim that is over would be refused anyway.
    const reports = [...this.#latest].filter(([execution]) => !execution.finished).map(([, report]) => report);
    this.#latest.clear();
    this.#sentMs = this.#o.clock.now();
    try {
      if (reports.length > 0) await this.#o.send(reports);
    } catch (e) {
      tellTrouble(this.#o.log, "could not store the progress of tasks", e);
    }
    // What was reported meanwhile waits for the next interval.
    this.#timer = this.#latest.size === 0 ? null : setTimeout(() => void this.#send(), INTERVAL_MS).unref();
  }
}

function checkFraction(fraction: unknown): number {
  if (typeof fraction === "number" && fraction >= 0 && fraction <= 1) return fraction;
  throw new SluiceError("invalid_option", `progress must be a number from 0 to 1, not ${quote(fraction)}`, {
    details: { option: "fraction" },
  });
}

function dataOf(data: unknown): string {
  return data === undefined ? "" : storable(data, PROGRESS_BYTES_MAX);
}
