import { monitorEventLoopDelay, type IntervalHistogram } from "node:perf_hooks";

const RESOLUTION_MS = 20;

function monitor(): IntervalHistogram {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  return histogram;
}

/**
 * Measures the delay of the event loop. The timers behind it run in C++ and do not keep the process alive.
 *
 * There are two monitors, read alternately, because a monitor that was reset measures nothing until its timer has fired
 * twice. If every tick of the loop takes longer than the time between two readings, a single monitor would be reset
 * before it measures anything.
 */
export class LoopDelay {
  readonly #monitors: readonly [IntervalHistogram, IntervalHistogram] = [monitor(), monitor()];
  #current: 0 | 1 = 0;
  #rests = false;

  watch(): void {
    if (!this.#rests) return;
    this.#rests = false;
    for (const one of this.#monitors) one.enable();
  }

  /** Stops measuring until watch() is called: its hundred wake-ups a second are the largest cost of an idle process. */
  rest(): void {
    if (this.#rests) return;
    this.#rests = true;
    for (const one of this.#monitors) {
      one.disable();
      one.reset();
    }
  }

  /**
   * The p99 since the last call but one. The monitor measures whole intervals, so the timer's own interval is
   * subtracted.
   */
  readMs(): number {
    if (this.#rests) return 0;
    this.#current = this.#current === 0 ? 1 : 0;
    const read = this.#monitors[this.#current];
    const p99Ms = read.percentile(99) / 1e6;
    read.reset();
    return Math.max(0, p99Ms - RESOLUTION_MS);
  }

  stop(): void {
    this.rest();
  }
}
