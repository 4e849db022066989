/** From a worker process to its parent. Times by the clock that all processes share. */
export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "progress"; readonly progress: Progress }
  | { readonly kind: "report"; readonly report: Report };

export type ToWorker =
  { readonly kind: "go" } | { readonly kind: "report" } | { readonly kind: "stop" };

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
  readonly latenciesMs: readonly number[];
  /** Mean time between begin and end of a task. */
  readonly lengthMs: number;
  /** Statements that asked for tasks, if the worker counts them. */
  readonly claims: number;
}
