import type { History } from "./history.js";
import type { Past } from "./past.js";
import { firstAfter, joined, Windows, type Window } from "./windows.js";

/**
 * Times in which no worker that serves a type was well: they were disturbed, ending or gone. Only workers that say what
 * they serve count, so a log in which none does excuses nothing.
 */
export class Unserved {
  readonly #history: History;
  readonly #known = new Map<string, Windows>();

  constructor(history: History) {
    this.#history = history;
  }

  of(type: string): Windows {
    let windows = this.#known.get(type);
    if (windows === undefined) this.#known.set(type, (windows = new Windows(this.#gaps(type))));
    return windows;
  }

  /** From the first worker that serves it on. */
  #gaps(type: string): Window[] {
    const well = [...this.#history.processes.values()].flatMap((past) => wellTimes(past, type));
    const spans = joined(well, Number.EPSILON);
    return spans.map(({ to }, i) => {
      return { from: to, to: spans[i + 1]?.from ?? Number.POSITIVE_INFINITY, what: type };
    });
  }
}

/** When this process served the type, undisturbed. */
function wellTimes({ serves, deaths, terminating, windows }: Past, type: string): Window[] {
  return serves
    .filter(({ types }) => types.includes(type))
    .flatMap(({ at }) => {
      const ends = [...deaths, ...terminating].toSorted((a, b) => a - b);
      const end = ends[firstAfter(ends, at, (one) => one)] ?? Number.POSITIVE_INFINITY;
      return without({ from: at, to: end, what: type }, windows);
    });
}

/** What is left of a time without some others. */
function without(time: Window, others: readonly Window[]): Window[] {
  const left: Window[] = [];
  let { from } = time;
  for (const other of others.toSorted((a, b) => a.from - b.from)) {
    if (other.to <= from || other.from >= time.to) continue;
    if (other.from > from) left.push({ ...time, from, to: other.from });
    from = Math.max(from, other.to);
  }
  return from < time.to ? [...left, { ...time, from }] : left;
}
