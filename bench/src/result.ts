/** Who was measured. */
export interface Who {
  /** Unique within a workload: "sluice, history off", "pg-boss, tuned", "1M blocked beside it". */
  readonly name: string;
  /** The library's name: "sluice", "pure-sql", "graphile-worker", ... */
  readonly library: string;
  /** "default", "tuned", "history off", ... */
  readonly variant: string;
  /** What is set, and why. */
  readonly config: string;
  readonly version: string;
  readonly store: "postgres" | "redis";
}

/** One measurement. A fact is one more number worth keeping; what could not be seen is left out. */
export interface Sample {
  readonly value: number;
  readonly facts: Facts;
}

/**
 * Names of facts, where they apply: tasks (how many were measured), seconds, nodeCpuMsPer1000,
 * databaseCpuMsPer1000, cpuUsPerTask (the sum of both), walBytesPerTask, rssMb (the largest of all processes of the subject),
 * p50Ms, p95Ms, p99Ms, inversions, overlaps, peak (most at once over all processes), peakPerKey,
 * meanTaskMs, tasksPerClaim, shareMinPercent and shareMaxPercent (of the tasks, by process).
 */
export type Facts = Readonly<Record<string, number>>;

/**
 * value / base, each the median of the ratios within the repetitions. What the base is does not
 * depend on whether more is better: with milliseconds a ratio below 1 is the better one.
 */
export interface Ratios {
  /** To the best variant of any peer. A peer is never Sluice nor pure SQL. */
  readonly bestPeer?: number;
  /** To the best variant of any peer that keeps its tasks in PostgreSQL. */
  readonly bestPostgresPeer?: number;
  readonly bullmqRedis?: number;
  readonly pureSql?: number;
  /** To what the workload itself names in `base`: a subject, or what theory allows. */
  readonly base?: number;
  /** CPU per task to that of the subject in `base`. Holds on a busy machine, where rates do not; less is better. */
  readonly baseCpu?: number;
}

export type Unit = "tasks/s" | "ms" | "MB" | "%";

/** What came out for one subject of a workload: medians over the repetitions. */
export interface Result {
  readonly workload: string;
  readonly about: string;
  readonly subject: Who;
  readonly unit: Unit;
  readonly better: "more" | "less";
  /** Null if the subject cannot do it. */
  readonly value: number | null;
  readonly min: number | null;
  readonly max: number | null;
  readonly ratios: Ratios;
  /** What `ratios.base` refers to, in words; null: the workload has none. */
  readonly base: string | null;
  /** Medians; but the largest of inversions, overlaps, peak and peakPerKey. */
  readonly facts: Facts;
  /** Why it cannot do it. */
  readonly cannot?: string;
  readonly samples: readonly Sample[];
}

/** What a reader must know about a run. */
export interface About {
  /** ISO time of the begin. */
  readonly at: string;
  readonly command: string;
  readonly node: string;
  readonly postgres: string;
  readonly redis: string | null;
  readonly settings: Readonly<Record<string, string>>;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryMb: number;
  readonly repetitions: number;
  readonly seconds: number;
  readonly quick: boolean;
  /** Name and version of each library that took part. */
  readonly versions: Readonly<Record<string, string>>;
}
