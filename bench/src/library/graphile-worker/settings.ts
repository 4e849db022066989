/** What differs between the variants. */
export interface Settings {
  readonly preset: GraphileConfig.WorkerOptions;
  /** What else is set where there is an order. */
  readonly ordered?: GraphileConfig.WorkerOptions;
  /** Jobs of one addJobs. */
  readonly bulkSize: number;
  /**
   * Whether each task of a key gets a run_at of its own. A queue goes by it, and jobs of one addJobs
   * share one, so their order would be luck.
   */
  readonly spaced: boolean;
}

const PLAIN = { concurrentJobs: 24, maxPoolSize: 10 } as const;

export const asIs: Settings = { preset: {}, bulkSize: 1_000, spaced: false };

/** Without its queue and its batches, which trade latency for throughput. */
export const plain: Settings = { preset: PLAIN, bulkSize: 1_000, spaced: true };

/**
 * For a large backlog of small jobs. Of an order the local queue gets one job of each key; where those are
 * fewer than it asked for it takes the backlog for empty and waits for the next poll, so that has to come soon.
 */
export const tuned: Settings = {
  preset: {
    ...PLAIN,
    localQueue: { size: 5_000 },
    completeJobBatchDelay: 0,
    failJobBatchDelay: 0,
  },
  ordered: { pollInterval: 1 },
  bulkSize: 1_000,
  spaced: true,
};
