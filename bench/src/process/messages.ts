import type { Ledger } from "../audit.js";
import type { Shape } from "../adapter.js";
import type { Keys } from "../inputs.js";

/** What a handler does. */
export type Work = "nothing" | "latency" | { readonly sleepMs: number };

/** A library in one of its variants, on a database. */
interface OnPlace {
  readonly url: string;
  readonly library: string;
  readonly variant: string;
  readonly shape: Shape;
}

/** A process that runs tasks. */
export interface WorkSpec extends OnPlace {
  readonly permits: number | null;
  readonly numbers: Readonly<Record<string, number>>;
  readonly work: Work;
  /** How many counted tasks all processes together will run. */
  readonly total: number;
  /** Whether to note when each task began and ended. */
  readonly watch: boolean;
}

/** A process that enqueues. */
export interface EnqueueSpec extends OnPlace {
  /** Whether to make first what tasks are kept in. */
  readonly install: boolean;
  readonly keys: Keys | null;
  readonly job: EnqueueJob;
}

export type EnqueueJob =
  /** Nothing is timed. */
  | { readonly kind: "fill"; readonly count: number; readonly inFlight: number }
  /** One list, or as many lists as there are calls in flight. */
  | { readonly kind: "bulk"; readonly count: number; readonly inFlight: number }
  /** Single calls without a transaction, so many of them under way at any time. */
  | {
      readonly kind: "singles";
      readonly count: number;
      readonly inFlight: number;
      readonly deadlineMs: number;
    }
  /** One task and one row of the caller's own in a transaction, from so many clients. */
  | {
      readonly kind: "clients";
      readonly count: number;
      readonly clients: number;
      readonly deadlineMs: number;
    }
  /** So many at a time, at fixed times. */
  | {
      readonly kind: "paced";
      readonly count: number;
      readonly each: number;
      readonly everyMs: number;
    };

/** Why a process that enqueues gave up: it cannot do this, or it failed. */
export interface Refusal {
  readonly cannot?: string;
  readonly failed?: string;
}

/** What a process that enqueues answers at its end. */
export interface Enqueued {
  readonly tasks: number;
  /** Before them, and not timed. */
  readonly warmUp: number;
  readonly ms: number;
  readonly cpuMs: number;
  readonly rssBytesMax: number;
}

/** From a worker process to its parent. Times by the clock that all processes share. */
export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "progress"; readonly progress: Progress }
  | { readonly kind: "report"; readonly report: Report };

export type ToWorker = { readonly kind: "go" } | { readonly kind: "report" } | { readonly kind: "stop" };

/** How far the counted tasks of one process are. */
export interface Progress {
  readonly begun: number;
  readonly ended: number;
  /** When the first began and the latest ended; null before that. */
  readonly firstMs: number | null;
  readonly lastMs: number | null;
}

/** What a process tells when it is asked. */
export interface Report {
  readonly rssBytes: number;
  readonly rssBytesMax: number;
  /** CPU time since it was let go. */
  readonly cpuMs: number;
  /** Of each task, in the order in which they began. */
  readonly latenciesMs: readonly number[];
  /** Mean time between begin and end of a task. */
  readonly lengthMs: number;
  /** Statements that asked for tasks, if the worker counts them. */
  readonly claims: number;
  /** Null if it was not to watch. */
  readonly ledger: Ledger | null;
}
