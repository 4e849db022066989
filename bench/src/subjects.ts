import type { Bench } from "./workload.js";

/**
 * Our worker, as one would set it for many small tasks. 1,000 permits are its default. Claims of 200
 * instead of 50: a no-op takes no time, so fairness between workers does not matter here and every
 * statement less is a commit less; graphile-worker's local queue of 5,000 is the same bargain.
 */
export const SLUICE = { maxConcurrentTasks: 1_000, claimBatchSize: 200 } as const;

export const SLUICE_CONFIG =
  "1,000 permits (the default), claims of 200: for no-ops fewer commits matter more than even shares";

/** The numbers of a worker of ours: this bench's, then the subject's, then the command line's. */
export function numbersOf(bench: Bench, own: Bench["worker"] = {}): Bench["worker"] {
  return { ...SLUICE, ...own, ...bench.worker };
}

/** graphile-worker tuned for a large backlog of small jobs. */
export const GRAPHILE = {
  concurrentJobs: 24,
  maxPoolSize: 10,
  localQueue: { size: 5_000 },
  completeJobBatchDelay: 0,
  failJobBatchDelay: 0,
} as const satisfies GraphileConfig.WorkerOptions;

export const GRAPHILE_CONFIG =
  "24 jobs at once, 10 connections, a local queue of 5,000, completions batched without delay: tuned for many small jobs";
