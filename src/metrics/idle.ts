const WINDOW_MS = 60_000;
const APART_MS = 1_000;

interface Mark {
  readonly atMs: number;
  readonly busyMs: number;
}

/**
 * What share of the permits was idle over the last minute, or since the oldest look if that is less, or
 * since the look before if that is longer ago. Whoever looks leaves a mark, at most one a second, so
 * that several who look do not disturb each other.
 */
export class IdleRatio {
  readonly #max: number;
  readonly #marks: Mark[];

  constructor(permitsMax: number, nowMs: number) {
    this.#max = permitsMax;
    this.#marks = [{ atMs: nowMs, busyMs: 0 }];
  }

  /** `busyMs`: the time of all tasks in flight so far, added up. */
  look(nowMs: number, busyMs: number): number {
    const marks = this.#marks;
    // The youngest that is a minute old, and all that are younger.
    while (marks.length > 1 && marks[1]!.atMs <= nowMs - WINDOW_MS) marks.shift();
    const { atMs, busyMs: before } = marks[0]!;
    if (nowMs - marks.at(-1)!.atMs >= APART_MS) marks.push({ atMs: nowMs, busyMs });
    const spanMs = nowMs - atMs;
    if (spanMs <= 0) return 1;
    return Math.min(1, Math.max(0, 1 - (busyMs - before) / (spanMs * this.#max)));
  }
}
