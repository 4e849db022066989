// What the audit has to say, as plain data.

/** What must not be. Each is a question of its own; the file that asks it tells what exactly counts. */
export const VIOLATIONS = [
  "lost",
  "succeededWithoutRun",
  "succeededTooEarly",
  "failedWithoutCause",
  "cancelledWithoutCause",
  "neverEnqueued",
  "acceptedTwice",
  "acceptedFromZombie",
  "ranTwiceWithoutCause",
  "overLimit",
  "outOfOrder",
  "startedBeforeRecorded",
  "overlapped",
  "early",
  "attemptsBurnt",
  "pausedStarts",
  "heldAtRest",
  "wrong",
  "slowRecovery",
  "starved",
  "miscounted",
  "lostItems",
  "itemTwice",
  "advancedTwice",
  "advancedWithoutCause",
  "aboveWindow",
  "outOfSequence",
  "startedTooSoon",
  "heardWrong",
  "notEnded",
  "wrongVerdict",
] as const;

export type Violation = (typeof VIOLATIONS)[number];

export interface Finding {
  readonly count: number;
  /** The first few, in words. */
  readonly first: readonly string[];
}

/** How many ran at once under a limit; of a limit per key, in the busiest. */
export interface Peak {
  /** `name`, or `name/*` for a limit per key. */
  readonly limit: string;
  readonly peak: number;
  /** For each number it had, in the order they came: null is no limit. */
  readonly under: readonly {
    readonly slots: number | null;
    readonly peak: number;
    /** For how long it was in force, all times together. */
    readonly ms: number;
  }[];
}

/** Samples of waiting tasks; those taken in calm times; the number of tasks in the latter. */
export interface Watched {
  readonly samples: number;
  readonly calm: number;
  readonly tasks: number;
  /** The longest time in which a task could have run, by samples in a row. */
  readonly longestMs: number;
}

/** Durations in milliseconds; null where there were none. */
export interface Spread {
  readonly count: number;
  readonly medianMs: number | null;
  readonly p95Ms: number | null;
  readonly maxMs: number | null;
}

export interface Recovery extends Spread {
  /** Runs that a process died with. */
  readonly died: number;
  /** Of those: recorded without running again. */
  readonly settled: number;
  /** Of those: late, for a reason that lies outside. */
  readonly excused: Readonly<Record<string, number>>;
}

export interface Zombies {
  /** Runs that went on after their lease was, or may have been, given to others. */
  readonly runs: number;
  /** Of those: said that they had completed. */
  readonly completedOutside: number;
  /** Tasks that succeeded although only zombies said so. Not wrong: their lease may have lasted. */
  readonly succeededByZombiesAlone: number;
}

/** Runs of workflows, and fan-outs of handlers. */
export interface Flows {
  readonly offered: number;
  readonly acknowledged: number;
  /** At rest. */
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
  /** Tasks that belong to one. */
  readonly parts: number;
  readonly retried: number;
  /** Their runs that went on after their lease was, or may have been, given to others. */
  readonly zombieRuns: number;
}

export interface Doubts {
  /** Runs that held their slots for certain only part of the time. */
  readonly runs: number;
  /** Starts that may stem from a claim long before: they are held against nothing. */
  readonly starts: number;
  /** Starts above a lowered number or of a paused type, that may stem from claims just before. */
  readonly lateStarts: number;
}

/** What workers counted themselves, against what was recorded. */
export interface Counted {
  readonly scrapes: number;
  /** Processes that were ever heard. */
  readonly workers: number;
  /** Of those: ended in good order and told their last numbers. */
  readonly ended: number;
  /** By the last scrape of each. */
  readonly completed: number;
  readonly unconfirmed: number;
}

export interface Report {
  /** All violations together. */
  readonly violations: number;
  readonly findings: Readonly<Record<Violation, Finding>>;
  readonly lines: number;
  readonly offered: number;
  readonly acknowledged: number;
  readonly tasks: number;
  readonly runs: number;
  readonly orderKeys: number;
  readonly deaths: number;
  readonly disturbances: number;
  readonly accepted: Readonly<Record<"succeeded" | "failed" | "cancelled", number>>;
  /** Handlers with neither an end nor a dead process. */
  readonly unended: number;
  /** Runs of tasks that had run before, by what allowed it. */
  readonly ranAgain: Readonly<Record<string, number>>;
  readonly peaks: readonly Peak[];
  readonly recovery: Recovery;
  /** From the end of each disturbance of everybody to the first start. */
  readonly resume: Spread;
  readonly zombies: Zombies;
  /** Leases that were lost although nothing disturbed their process: a starved machine. */
  readonly leasesLost: number;
  readonly doubtful: Doubts;
  readonly counted: Counted;
  readonly watched: Watched;
  readonly flows: Flows;
}
