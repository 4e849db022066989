import { monitorEventLoopDelay, type IntervalHistogram } from "node:perf_hooks";

const RESOLUTION_MS = 20;

function monitor(): IntervalHistogram {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  return histogram;
}

/**
 * How late the event loop comes round. The timers behind it run in C++ and keep no process alive.
 *
 * There are two monitors, read by turns, because one that is reset measures nothing until its timer has
 * come twice: where every turn of the loop takes longer than the time between two readings, a single one
 * would be reset before it has seen anything.
 */
export class LoopDelay {
  readonly #monitors: readonly [IntervalHistogram, IntervalHistogram] = [monitor(), monitor()];
  #turn: 0 | 1 = 0;
  #rests = false;

  watch(): void {
    if (!this.#rests) return;
    this.#rests = false;
    for (const one of this.#monitors) one.enable();
  }

  /** Measures nothing until it watches again: a hundred wake-ups a second are the most that an idle process costs. */
  rest(): void {
    if (this.#rests) return;
    this.#rests = true;
    for (const one of this.#monitors) {
      one.disable();
      one.reset();
    }
  }

  /** The p99 since the last call but one. Whole intervals are measured; the timer's own is no delay. */
  readMs(): number {
    if (this.#rests) return 0;
    this.#turn = this.#turn === 0 ? 1 : 0;
    const read = this.#monitors[this.#turn];
    const p99Ms = read.percentile(99) / 1e6;
    read.reset();
    return Math.max(0, p99Ms - RESOLUTION_MS);
  }

  stop(): void {
    this.rest();
  }
}
