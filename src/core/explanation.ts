import type { TaskState } from "./state.js";

/** A task that holds a slot. */
export interface Holder {
  readonly task: string;
  readonly type: string;
  readonly queue: string;
  /** `running`, or what keeps its slot without running; `failed` blocks its order key. */
  readonly state: TaskState;
  /** Since when it runs, or has failed; null if it does neither. */
  readonly since: Date | null;
  /** The name of its worker. */
  readonly worker: string | null;
  /** Why it does not run itself, told of the first of them. */
  readonly reason: Reason | null;
}

/** How many stand in line before the task, counted up to 10,000; null where it does not stand yet. */
type Before = number | null;

/** Slots that are all in use. */
interface Full {
  readonly slots: number;
  readonly used: number;
  readonly before: Before;
  /** At most ten, those first that have run the longest. */
  readonly holders: readonly Holder[];
}

/** The line of an order key. */
interface Key {
  readonly key: string;
  readonly scope: string | null;
  readonly before: Before;
}

/** One thing between a task and its run. */
export type Reason = { readonly message: string } & (
  | { readonly kind: "scheduled"; readonly until: Date }
  /** holder: null if the slot has just come back, and those before it in line have it next. */
  | ({ readonly kind: "order"; readonly holder: Holder | null } & Key)
  | ({ readonly kind: "blocked"; readonly holder: Holder } & Key)
  /** key: null for a total. */
  | ({ readonly kind: "limit"; readonly limit: string; readonly key: string | null } & Full)
  | ({ readonly kind: "window"; readonly run: string; readonly node: string } & Full)
  | { readonly kind: "children"; readonly runs: readonly string[] }
  | { readonly kind: "suspect"; readonly crashes: number; readonly worker: string | null }
  | { readonly kind: "stopping"; readonly run: string }
  | { readonly kind: "paused"; readonly what: "queue" | "run"; readonly name: string }
  /** elsewhere: other queues in which live workers serve its type. */
  | {
      readonly kind: "noWorker";
      readonly leaving: number;
      readonly elsewhere: readonly string[];
    }
  /** heardAt: of the one that was heard last. */
  | { readonly kind: "silent"; readonly workers: number; readonly heardAt: Date }
  | { readonly kind: "pressure"; readonly workers: number; readonly reasons: readonly string[] }
  /** capacity: how many tasks they can have in hand. */
  | {
      readonly kind: "busy";
      readonly workers: number;
      readonly capacity: number;
      readonly before: Before;
    }
  | { readonly kind: "next"; readonly before: number }
);

export type ReasonKind = Reason["kind"];

/** Why a task does not run. */
export interface Explanation {
  readonly task: string;
  readonly type: string;
  readonly queue: string;
  readonly state: TaskState;
  /** The first reason in words, or how it runs or has ended. */
  readonly message: string;
  /** In the order in which it meets them: the first is what holds it now. None if it runs or is over. */
  readonly reasons: readonly Reason[];
  /** Attempts used, the one under way included. */
  readonly attempt: number;
  readonly attemptsMax: number;
  readonly createdAt: Date;
  readonly finishedAt: Date | null;
  /** The message of the error, if it has failed. */
  readonly error: string | null;
  /** The order key that it blocks by its failure, and how many stand behind it. */
  readonly blocks: {
    readonly key: string;
    readonly scope: string | null;
    readonly behind: number;
  } | null;
  /** If it runs. */
  readonly run: RunExplained | null;
  /** If it belongs to a run of a workflow, or of `ctx.map`. */
  readonly workflow: {
    readonly run: string;
    readonly node: string;
    /** Of a fan-out, from 0. */
    readonly item: number | null;
  } | null;
  /** When all of this was so, by the database's clock. */
  readonly at: Date;
}

export interface RunExplained {
  /** null once its worker is gone. */
  readonly worker: string | null;
  readonly since: Date;
  /** The worker's last heartbeat. */
  readonly heardAt: Date | null;
  readonly leaseUntil: Date | null;
  /** Its worker has missed a heartbeat. */
  readonly silent: boolean;
  /** Its worker's lease is over: the task comes back. */
  readonly lost: boolean;
  /** Somebody has cancelled it; its handler hears of that with the next heartbeat. */
  readonly stopping: boolean;
}

/** What holds the tasks of a queue. */
export interface QueueExplanation {
  readonly queue: string;
  readonly paused: boolean;
  /** Those that serve any of its types, as of their last heartbeats. */
  readonly workers: {
    readonly live: number;
    readonly leaving: number;
    /** Those that have missed a heartbeat. */
    readonly silent: number;
    /** Those that claim nothing because of memory or load. */
    readonly stopped: number;
    /** How many tasks the others can have in hand, and how many more they would take. */
    readonly capacity: number;
    readonly available: number;
  };
  readonly running: readonly { readonly type: string; readonly count: number }[];
  /** By type and reason, those that hold the most first; at most 100. */
  readonly reasons: readonly QueueReason[];
  /** How many more there are. */
  readonly reasonsLeft: number;
  /** When all of this was so, by the database's clock. */
  readonly at: Date;
}

export interface QueueReason {
  readonly kind: ReasonKind;
  readonly type: string;
  /** If the kind is `limit`. */
  readonly limit: string | null;
  /** Of a total. */
  readonly slots: number | null;
  readonly used: number | null;
  /** At how many different keys or windows they stand. */
  readonly keys: number | null;
  /** When the first of those that are scheduled is due. */
  readonly until: Date | null;
  readonly count: number;
  /** It was counted up to here, and there may be more. */
  readonly more: boolean;
  /** One of them, to ask more about. */
  readonly task: string;
  readonly message: string;
}

/** Leaves out the words, of each kind apart. */
export type Untold<T> = T extends unknown ? Omit<T, "message"> : never;
/** A reason without its words. */
export type BareReason = Untold<Reason>;
