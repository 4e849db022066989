import type { Library, Variant } from "./adapter.js";
import type { Facts, Sample, Unit, Who } from "./result.js";
import type { Stores } from "./stores.js";

/** What every measurement gets. */
export interface Bench {
  readonly stores: Stores;
  /** How long a measurement shall last. */
  readonly seconds: number;
  readonly quick: boolean;
  /** Numbers of our worker that the command line overrides. */
  readonly numbers: Readonly<Record<string, number>>;
  /** Processes write CPU profiles here. */
  readonly profile: string | null;
  /** We were told to end: what fails now fails because of that. */
  readonly interrupted: AbortSignal;
}

/** A library in one of its variants, in a workload. */
export interface Entrant {
  readonly library: Library;
  readonly variant: Variant;
}

/** One thing that is measured. */
export interface Subject {
  readonly who: Who;
  /** Why it cannot do this; null: it can. */
  readonly cannot: string | null;
  /** Measures with so many tasks, and gives up after so long. */
  measure(bench: Bench, tasks: number, deadlineMs: number): Promise<Sample>;
}

/** How many tasks a measurement has. */
export type Sizing =
  /** As many as last so long; seconds: so many times the time that the command line gives. */
  | {
      readonly by: "seconds";
      readonly times?: number;
      readonly multipleOf?: number;
      /** Not fewer, however slow: else it would be another workload. */
      readonly min?: number;
      /** All subjects alike, as many as the first of them needs. */
      readonly alike?: boolean;
    }
  | { readonly by: "count"; readonly tasks: number; readonly quick?: number }
  /** As many as come in that time. */
  | { readonly by: "rate"; readonly perSecond: number };

/** A subject of the same workload, or a number that theory gives. */
export type Base = { readonly subject: string } | { readonly ideal: number; readonly words: string } | null;

/** One more result from the same measurements. */
export interface Reading {
  readonly workload: string;
  readonly about: string;
  readonly fact: string;
  readonly unit: Unit;
}

/** Things that are measured side by side. */
export interface Workload {
  readonly name: string;
  readonly about: string;
  readonly unit: Unit;
  readonly better: "more" | "less";
  readonly sizing: Sizing;
  /** What `ratios.base` refers to. */
  readonly base: Base;
  readonly subjects: readonly Subject[];
  readonly readings?: readonly Reading[];
  /** Whether what was asked for was kept, by the facts of a sample; who did not keep it is nobody's measure. */
  kept?(facts: Facts): boolean;
}
