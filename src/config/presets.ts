import { availableParallelism } from "node:os";

/** The settings that a preset decides; the rest stay at their defaults. */
export interface PresetNumbers {
  readonly claimLoops?: number;
  readonly maxConcurrentTasks?: number;
  readonly claimBatchSize?: number;
  readonly dbConnections?: number;
}

/** A name that stands for claim loops, permits and connections that fit together. */
export const presetNames = ["default", "dev", "balanced", "high", "cpu", "io", "throughput"] as const;
export type PresetName = (typeof presetNames)[number];

/** The purpose of each preset, as `sluice plan` and the page show it. */
export const presetPurposes: Readonly<Record<PresetName, string>> = {
  default: "async work in any amount, shared evenly by the workers",
  dev: "a developer's machine: 3 tasks at once",
  balanced: "5 tasks at once: work that is heavy on CPU and I/O",
  high: "10 tasks at once, however many wait: heavy tasks, not many short ones",
  cpu: "tasks that keep a core busy, in threads",
  io: "20 tasks at once, however many wait: slow calls to others, not many short tasks",
  throughput: "draining many short tasks fast: claims of 500, at the price of even shares",
};

// More than a few threads' worth of CPU-bound handlers in one process would delay its heartbeat.
const CPU_PERMITS_MAX = 4;

/** Claim loops, permits and connections of a preset. The default for async work has no numbers of its own. */
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
    throughput: { ...of(1, 2_000, 17), claimBatchSize: 500 },
  }[name];
}
