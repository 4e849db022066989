import type { WorkerOptions } from "../../../../src/index.js";

export type Numbers = Omit<WorkerOptions, "handlers" | "name">;

/**
 * Our worker, as one would set it for many small tasks. 1,000 permits are its default. Claims of 500
 * instead of 50: a no-op takes no time, so fairness between workers does not matter here and every
 * statement less is a commit less; graphile-worker's local queue is the same bargain.
 */
export const TUNED = { maxConcurrentTasks: 1_000, claimBatchSize: 500 } as const;

// One claim must not be most of what a worker may hold; 500 at once fill 10,000 permits in 20 claims.
const MANY_PERMITS = 5_000;
const BATCH_OF_MANY = 500;

/** The numbers for so many permits; null: as they are. */
export function withPermits(numbers: Numbers, permits: number | null): Numbers {
  if (permits === null) return numbers;
  const many = permits >= MANY_PERMITS ? { claimBatchSize: BATCH_OF_MANY } : {};
  return { ...numbers, ...many, maxConcurrentTasks: permits };
}
