// Times in which a process may have been unable to keep its lease.

export interface Window {
  readonly from: number;
  to: number;
  readonly what: string;
}

/** Windows by their beginning, which may overlap. Whoever asks gets those that touch a time in between. */
export class Windows {
  readonly #sorted: readonly Window[];
  /** The latest end of this window and all before it. */
  readonly #latest: readonly number[];

  constructor(windows: readonly Window[]) {
    this.#sorted = windows.toSorted((a, b) => a.from - b.from);
    let latest = Number.NEGATIVE_INFINITY;
    this.#latest = this.#sorted.map(({ to }) => (latest = Math.max(latest, to)));
  }

  get all(): readonly Window[] {
    return this.#sorted;
  }

  /** Those that touch [from, to]; the last first. */
  touching(from: number, to: number): Window[] {
    const found: Window[] = [];
    for (let i = this.#after(to) - 1; i >= 0 && this.#latest[i]! >= from; i--)
      if (this.#sorted[i]!.to >= from) found.push(this.#sorted[i]!);
    return found;
  }

  /** The first moment, from `at` on, at which a window is open or has been for less than `shadowMs`. */
  firstFrom(at: number, shadowMs: number): number {
    if (this.touching(at - shadowMs, at).length > 0) return at;
    return this.#sorted[this.#after(at)]?.from ?? Number.POSITIVE_INFINITY;
  }

  /** The place of the first that begins after `at`. */
  #after(at: number): number {
    return firstAfter(this.#sorted, at, ({ from }) => from);
  }
}

/** Joins windows with less than `gapMs` between them. */
export function joined(windows: readonly Window[], gapMs: number): Window[] {
  const out: Window[] = [];
  for (const { from, to, what } of windows.toSorted((a, b) => a.from - b.from)) {
    const last = out.at(-1);
    if (last !== undefined && from - last.to < gapMs) last.to = Math.max(last.to, to);
    else out.push({ from, to, what });
  }
  return out;
}

/** The place of the first in a sorted list that lies after `at`. */
export function firstAfter<T>(sorted: readonly T[], at: number, of: (one: T) => number): number {
  let [low, high] = [0, sorted.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (of(sorted[middle]!) <= at) low = middle + 1;
    else high = middle;
  }
  return low;
}

interface Edge {
  readonly at: number;
  readonly what: string;
}

/** A window begins. */
export function open(windows: Window[], { at, what }: Edge): void {
  windows.push({ from: at, to: Number.POSITIVE_INFINITY, what });
}

/** The last one of its kind that is open ends. */
export function close(windows: Window[], { at, what }: Edge): void {
  const last = windows.findLast((window) => window.to === Infinity && window.what === what);
  if (last !== undefined) last.to = at;
}
