import type { WorkerOptions } from "../../src/index.js";
import type { Databases } from "./databases.js";
import type { Sizes } from "./sizes.js";

/** What every measurement gets. */
export interface Bench {
  readonly sizes: Sizes;
  readonly databases: Databases;
  /** Numbers of our worker that the command line overrides. */
  readonly worker: Omit<WorkerOptions, "handlers" | "name">;
  /** Worker processes write CPU profiles here. */
  readonly profile: string | null;
}

/** One measurement. facts: more numbers worth printing. */
export interface Sample {
  readonly value: number;
  readonly facts?: Readonly<Record<string, number>>;
}

/** One thing that is measured. */
export interface Subject {
  readonly name: string;
  /** Its configuration, and why. */
  readonly config: string;
  measure(bench: Bench): Promise<Sample>;
}

/** A subject, the one with the lowest value of several, a number that theory gives, or nothing. */
export type Base =
  | { readonly subject: string }
  | { readonly lowestOf: readonly string[] }
  | { readonly ideal: number }
  | null;

/** Things that are measured side by side. */
export interface Workload {
  readonly name: string;
  readonly about: string;
  readonly unit: "tasks/s" | "ms" | "MB";
  /** What a ratio refers to. */
  readonly base: Base;
  readonly subjects: readonly Subject[];
}
