import type { Line } from "./line.js";
import type { Window } from "./windows.js";

type Of<K extends Line["kind"]> = Extract<Line, { readonly kind: K }>;

/** What became of a process. */
export interface Past {
  readonly name: string;
  readonly deaths: number[];
  readonly terminating: number[];
  readonly windows: Window[];
  /** When a handler said that the lease was lost. */
  readonly leasesLost: number[];
  readonly scrapes: Of<"scraped">[];
  readonly serves: Of<"serves">[];
  lastSaid: number;
  awakeSince: number;
}

/** Of a process that has said nothing yet. */
export function newPast(name: string): Past {
  const never = Number.NEGATIVE_INFINITY;
  return {
    name,
    deaths: [],
    terminating: [],
    windows: [],
    leasesLost: [],
    scrapes: [],
    serves: [],
    lastSaid: never,
    awakeSince: never,
  };
}
