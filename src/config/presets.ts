import { availableParallelism } from "node:os";

/** What a preset decides; the rest stays at its default. */
export interface PresetNumbers {
  readonly claimLoops?: number;
  readonly maxConcurrentTasks?: number;
  readonly dbConnections?: number;
}

/** A name that stands for claim loops, permits and connections that fit together. */
export const presetNames = ["default", "dev", "balanced", "high", "cpu", "io"] as const;
export type PresetName = (typeof presetNames)[number];

// More than a few threads' worth of CPU-bound handlers in one process would hold up its heartbeat.
const CPU_PERMITS_MAX = 4;

/** Claim loops / permits / connections of a preset. The default for async work has no numbers of its own. */
export function presetOf(name: PresetName, cores = availableParallelism()): PresetNumbers {
  const of = (claimLoops: number, maxConcurrentTasks: number, dbConnections: number) => ({
    claimLoops,
    maxConcurrentTasks,
    dbConnections,
  });
  return {
    default: {},
    dev: of(2, 3, 12),
    balanced: of(3, 5, 15),
    high: of(5, 10, 25),
    cpu: of(2, Math.min(cores, CPU_PERMITS_MAX), 15),
    io: of(5, 20, 35),
  }[name];
}
