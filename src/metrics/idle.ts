const WINDOW_MS = 60_000;
const APART_MS = 1_000;

interface Mark {
  readonly atMs: number;
  readonly busyMs: number;
}

/**
 * The share of permits that was idle over the last minute; since the oldest reading if that is more recent; or since
 * the previous reading if that is longer ago. Each reading leaves a mark, at most one per second, so that several
 * readers do not disturb each other.
 */
export class IdleRatio {
  readonly #max: number;
  readonly #marks: Mark[];

  constructor(permitsMax: number, nowMs: number) {
    this.#max = permitsMax;
    this.#marks = [{ atMs: nowMs, busyMs: 0 }];
  }

  /** `busyMs`: the total time of all tasks in flight so far. */
  look(nowMs: number, busyMs: number): number {
    const marks = this.#marks;
    // Keep the youngest mark that is a minute old, and all younger ones.
    while (marks.length > 1 && marks[1]!.atMs <= nowMs - WINDOW_MS) marks.shift();
    const { atMs, busyMs: before } = marks[0]!;
    if (nowMs - marks.at(-1)!.atMs >= APART_MS) marks.push({ atMs: nowMs, busyMs });
    const spanMs = nowMs - atMs;
    if (spanMs <= 0) return 1;
    return Math.min(1, Math.max(0, 1 - (busyMs - before) / (spanMs * this.#max)));
  }
}
