import { VIOLATIONS, type Finding, type Spread, type Violation } from "./report.js";

const FIRST_MAX = 20;

/** Collects what is found. Words are made only for the first few of each kind. */
export class Findings {
  readonly #found = new Map<Violation, { count: number; first: string[] }>();

  add(kind: Violation, words: () => string): void {
    let found = this.#found.get(kind);
    if (found === undefined) this.#found.set(kind, (found = { count: 0, first: [] }));
    if (found.count++ < FIRST_MAX) found.first.push(words());
  }

  get total(): number {
    return [...this.#found.values()].reduce((sum, { count }) => sum + count, 0);
  }

  toJSON(): Record<Violation, Finding> {
    const of = (kind: Violation): Finding => this.#found.get(kind) ?? { count: 0, first: [] };
    const all: Partial<Record<Violation, Finding>> = {};
    for (const kind of VIOLATIONS) all[kind] = of(kind);
    return all as Record<Violation, Finding>;
  }
}

/** How often each word was counted. */
export class Tally {
  readonly #counts = new Map<string, number>();

  add(word: string): void {
    this.#counts.set(word, (this.#counts.get(word) ?? 0) + 1);
  }

  /** The most frequent first. */
  toJSON(): Record<string, number> {
    return Object.fromEntries([...this.#counts].toSorted(([, a], [, b]) => b - a));
  }
}

export function spreadOf(durationsMs: readonly number[]): Spread {
  const sorted = durationsMs.toSorted((a, b) => a - b);
  const at = (share: number): number | null => {
    const ms = sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
    return ms === undefined ? null : Math.round(ms);
  };
  return { count: sorted.length, medianMs: at(0.5), p95Ms: at(0.95), maxMs: at(1) };
}

/** When, told from the first line of the log on. */
export type Clock = (at: number) => string;

export function clockFrom(first: number): Clock {
  return (at) => (Number.isFinite(at) ? `${((at - first) / 1000).toFixed(3)} s` : "the end");
}
