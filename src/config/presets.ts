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
  default: "async tasks at any rate, spread evenly over the workers",
  dev: "a developer's machine: 3 tasks at once",
  balanced: "5 tasks at once: tasks that use much CPU and I/O",
  high: "10 tasks at once, whatever the backlog: heavy tasks, not many short ones",
  cpu: "tasks that keep a core busy in worker threads",
  io: "20 tasks at once, whatever the backlog: slow calls to other services, not many short tasks",
  throughput: "fast draining of many short tasks: claims of 500, which spread less evenly over the workers",
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
