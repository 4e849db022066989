import type { TaskState } from "./state.js";

/** A task that holds a slot. */
export interface Holder {
  readonly task: string;
  readonly type: string;
  /** `running`, or what keeps its slot without running; `failed` blocks its order key. */
  readonly state: TaskState;
  /** Since when it runs, or has failed; null if it does neither. */
  readonly since: Date | null;
  /** The name of its worker. */
  readonly worker: string | null;
}

/** How many stand in line before the task, counted up to 10,000; null where it does not stand yet. */
type Before = number | null;

/** One thing between a task and its run. */
export type Reason = { readonly message: string } & (
  | { readonly kind: "scheduled"; readonly until: Date; readonly attempt: number }
  | {
      readonly kind: "order";
      readonly key: string;
      readonly before: Before;
      readonly holder: Holder | null;
    }
  | {
      readonly kind: "limit";
      readonly limit: string;
      /** null for a total. */
      readonly key: string | null;
      readonly slots: number;
      readonly used: number;
      readonly before: Before;
      /** At most ten, those first that have run the longest. */
      readonly holders: readonly Holder[];
    }
  | {
      readonly kind: "window";
      readonly run: string;
      readonly node: string;
      readonly slots: number;
      readonly used: number;
      readonly before: Before;
      readonly holders: readonly Holder[];
    }
  | { readonly kind: "children"; readonly runs: readonly string[] }
  | { readonly kind: "suspect"; readonly crashes: number; readonly worker: string | null }
  | { readonly kind: "stopping"; readonly run: string }
  | { readonly kind: "paused"; readonly what: "queue" | "run"; readonly name: string }
  | { readonly kind: "noWorker"; readonly leaving: number }
  | { readonly kind: "pressure"; readonly workers: number; readonly reasons: readonly string[] }
  | { readonly kind: "busy"; readonly workers: number; readonly capacity: number }
  | { readonly kind: "next"; readonly before: number }
);

export type ReasonKind = Reason["kind"];

/** Why a task does not run. */
export interface Explanation {
  readonly task: string;
  readonly type: string;
  readonly queue: string;
  readonly state: TaskState;
  /** The first reason, or how it runs or has ended. */
  readonly message: string;
  /** In the order in which it meets them: the first is what holds it now. None if it runs or is over. */
  readonly reasons: readonly Reason[];
  /** If it runs. */
  readonly run: RunExplained | null;
  /** If it belongs to a run of a workflow, or of `ctx.map`. */
  readonly workflow: {
    readonly run: string;
    readonly node: string;
    /** Of a fan-out, from 0. */
    readonly item: number | null;
  } | null;
}

export interface RunExplained {
  /** null once its worker is gone. */
  readonly worker: string | null;
  readonly since: Date;
  readonly leaseUntil: Date | null;
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
    readonly capacity: number;
    readonly available: number;
    /** Those that claim nothing because of memory or load. */
    readonly stopped: number;
  };
  readonly running: readonly { readonly type: string; readonly count: number }[];
  /** By type and reason, those that hold the most first. */
  readonly reasons: readonly QueueReason[];
}

export interface QueueReason {
  readonly kind: ReasonKind;
  readonly type: string;
  /** If the kind is `limit`. */
  readonly limit: string | null;
  /** Of a total. */
  readonly slots: number | null;
  readonly used: number | null;
  readonly count: number;
  /** It was counted up to here, and there are more. */
  readonly more: boolean;
  /** One of them, to ask more about: the oldest, or of those that are scheduled the next. */
  readonly task: string;
  readonly message: string;
}

/** Leaves out the message, of each kind apart. */
export type Untold<T> = T extends unknown ? Omit<T, "message"> : never;
/** A reason without its words. */
export type BareReason = Untold<Reason>;
