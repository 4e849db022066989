import type { TaskState } from "./state.js";

/** A task that holds a slot. */
export interface Holder {
  readonly task: string;
  readonly type: string;
  readonly queue: string;
  /** `running`, or another state in which the task keeps its slot without running; `failed` blocks its order key. */
  readonly state: TaskState;
  /** When it started running or failed; null if neither. */
  readonly since: Date | null;
  /** The name of the worker that runs it. */
  readonly worker: string | null;
  /** Why the holder itself does not run; set only for the first holder. */
  readonly reason: Reason | null;
}

/** The number of tasks ahead of the task in line, counted up to 10,000; null if it is not in line yet. */
type Before = number | null;

/** A limit whose slots are all in use. */
interface Full {
  readonly slots: number;
  readonly used: number;
  readonly before: Before;
  /** At most ten, longest-running first. */
  readonly holders: readonly Holder[];
}

/** The line of an order key. */
interface Key {
  readonly key: string;
  readonly scope: string | null;
  readonly before: Before;
}

/** One obstacle that keeps a task from running. */
export type Reason = { readonly message: string } & (
  | { readonly kind: "scheduled"; readonly until: Date }
  /** holder: null if the slot has just been released and goes to a task ahead in line. */
  | ({ readonly kind: "order"; readonly holder: Holder | null } & Key)
  | ({ readonly kind: "blocked"; readonly holder: Holder } & Key)
  /** key: null for a total. */
  | ({ readonly kind: "limit"; readonly limit: string; readonly key: string | null } & Full)
  | ({ readonly kind: "window"; readonly run: string; readonly node: string } & Full)
  | { readonly kind: "children"; readonly runs: readonly string[] }
  | { readonly kind: "suspect"; readonly crashes: number; readonly worker: string | null }
  | { readonly kind: "stopping"; readonly run: string }
  | { readonly kind: "paused"; readonly what: "queue" | "run"; readonly name: string }
  /** elsewhere: other queues in which live workers serve this type. */
  | {
      readonly kind: "noWorker";
      readonly leaving: number;
      readonly elsewhere: readonly string[];
    }
  /** heardAt: the latest heartbeat of any of these workers. */
  | { readonly kind: "silent"; readonly workers: number; readonly heardAt: Date }
  | { readonly kind: "pressure"; readonly workers: number; readonly reasons: readonly string[] }
  /** capacity: how many tasks these workers can execute at once. */
  | {
      readonly kind: "busy";
      readonly workers: number;
      readonly capacity: number;
      readonly before: Before;
    }
  | { readonly kind: "next"; readonly before: number }
);

export type ReasonKind = Reason["kind"];

/** Explains why a task does not run. */
export interface Explanation {
  readonly task: string;
  readonly type: string;
  readonly queue: string;
  readonly state: TaskState;
  /** The first reason in words, or how the task is running or has ended. */
  readonly message: string;
  /**
   * In the order in which the task meets them: the first one holds it now. Empty if the task is running or has ended.
   */
  readonly reasons: readonly Reason[];
  /** Attempts used, including the current one. */
  readonly attempt: number;
  readonly attemptsMax: number;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
  /** The message of the error, if the task has failed; of the last failed attempt, while it is retried. */
  readonly error: string | null;
  /** The order key that this task's failure blocks, and the number of tasks behind it. */
  readonly blocks: {
    readonly key: string;
    readonly scope: string | null;
    readonly behind: number;
  } | null;
  /** Set while the task is running. */
  readonly execution: ExecutionExplained | null;
  /** Set if the task belongs to a workflow run or to `ctx.map`. */
  readonly workflow: {
    readonly run: string;
    readonly node: string;
    /** The index in the fan-out, from 0. */
    readonly item: number | null;
  } | null;
  /** The time of this snapshot, by the database's clock. */
  readonly at: Date;
}

export interface ExecutionExplained {
  /** null once the worker is gone. */
  readonly worker: string | null;
  readonly since: Date;
  /** The worker's last heartbeat. */
  readonly heardAt: Date | null;
  readonly leaseUntil: Date | null;
  /** The worker has missed a heartbeat. */
  readonly silent: boolean;
  /** The worker's lease has expired: the task will be released. */
  readonly lost: boolean;
  /** Cancellation was requested; the handler's signal is aborted with the worker's next heartbeat. */
  readonly stopping: boolean;
}

/** Explains why the tasks of a queue do not run. */
export interface QueueExplanation {
  readonly queue: string;
  readonly paused: boolean;
  /** Workers that serve any type of this queue, as of their last heartbeats. */
  readonly workers: {
    readonly live: number;
    readonly leaving: number;
    /** Workers that have missed a heartbeat. */
    readonly silent: number;
    /** Workers that claim nothing because of memory or load. */
    readonly stopped: number;
    /** How many tasks the other workers can execute at once, and how many more they would claim. */
    readonly capacity: number;
    readonly available: number;
  };
  readonly running: readonly { readonly type: string; readonly count: number }[];
  /** Grouped by type and reason, largest count first; at most 100. */
  readonly reasons: readonly QueueReason[];
  /** The number of reasons left out. */
  readonly reasonsLeft: number;
  /** The time of this snapshot, by the database's clock. */
  readonly at: Date;
}

export interface QueueReason {
  readonly kind: ReasonKind;
  readonly type: string;
  /** Set if the kind is `limit`. */
  readonly limit: string | null;
  /** Set for a total. */
  readonly slots: number | null;
  readonly used: number | null;
  /** The number of different keys or windows that hold these tasks. */
  readonly keys: number | null;
  /** When the first scheduled task is due. */
  readonly until: Date | null;
  readonly count: number;
  /** Counting stopped here; there may be more. */
  readonly more: boolean;
  /** One of these tasks, as an argument for `explain`. */
  readonly task: string;
  readonly message: string;
}

/** Omits `message` from each member of a union separately. */
export type Untold<T> = T extends unknown ? Omit<T, "message"> : never;
/** A reason without its message. */
export type BareReason = Untold<Reason>;
