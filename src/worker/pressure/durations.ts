// A window of one minute, dropped a sixth at a time.
const SLICES = 6;
const SLICE_MS = 10_000;
// Eight steps per doubling, from a tenth of a millisecond to some days. The result is off by less than 5 %, which is
// enough to compare with a threshold, and takes 6 KB whatever the load.
const STEPS = 8;
const SMALLEST_MS = 0.1;
const BUCKETS = 32 * STEPS;
// With fewer tasks, the p99 is only the slowest of them.
const TASKS_MIN = 10;

/** Task durations of the last minute. Recording a task costs one logarithm and one addition. */
export class Durations {
  readonly #slices = Array.from({ length: SLICES }, () => new Uint32Array(BUCKETS));
  #at = 0;
  #sinceMs: number;

  constructor(nowMs: number) {
    this.#sinceMs = nowMs;
  }

  add(ms: number): void {
    const step = Math.floor(Math.log2(ms / SMALLEST_MS) * STEPS);
    // The logarithm of 0 ms is -Infinity.
    const bucket = step > 0 ? Math.min(step, BUCKETS - 1) : 0;
    this.#slices[this.#at]![bucket]!++;
  }

  /** The p99, or null while too few tasks have ended. Forgets durations older than the window. */
  p99Ms(nowMs: number): number | null {
    this.#advance(nowMs);
    let total = 0;
    for (const slice of this.#slices) for (const n of slice) total += n;
    if (total < TASKS_MIN) return null;
    let above = Math.floor(total / 100);
    for (let bucket = BUCKETS - 1; ; bucket--) {
      for (const slice of this.#slices) above -= slice[bucket]!;
      // The middle of the bucket.
      if (above < 0) return SMALLEST_MS * 2 ** ((bucket + 0.5) / STEPS);
    }
  }

  #advance(nowMs: number): void {
    const slices = Math.floor((nowMs - this.#sinceMs) / SLICE_MS);
    for (let i = 0; i < Math.min(slices, SLICES); i++) {
      this.#at = (this.#at + 1) % SLICES;
      this.#slices[this.#at]!.fill(0);
    }
    this.#sinceMs += slices * SLICE_MS;
  }
}
