import type { Passed } from "../../postgres/passed.js";
import type { StepReply } from "../../postgres/step.js";

/** How an execution ended, from the worker's view. What the database recorded is counted separately. */
export type Ending = "succeeded" | "retried" | "failed" | "cancelled" | "snoozed" | "waiting" | "released" | "lost";

/** Connection pools: claims and settles, handler transactions, enqueue and queries. */
type Pool = "claim" | "handlers" | "api";

/** Something that a handler has started, with its start time by the worker's clock. */
export interface Begun {
  readonly startedMs: number;
}

/**
 * Receives events from claimer and executions: metrics count them, pressure watches them. These methods are on the hot
 * path: every argument is a number, a constant or an existing list, and implementations allocate nothing per task and
 * never throw. All times are by the worker's monotonic clock.
 */
export interface Meter {
  /** A claim was answered with `tasks` tasks. */
  claimed(tasks: number, tookMs: number): void;
  /** A task was claimed `waitMs` after it was due. At most one call per claim. */
  queued(waitMs: number): void;
  /** A task with limits was claimed, and passed these limits. */
  passed(limits: Passed): void;
  /** A claim, or a statement that records outcomes, failed or got no reply. */
  stepFailed(): void;
  /** A caller waited `ms` for a connection of the pool. */
  waited(pool: Pool, ms: number): void;
  /** A handler is about to be called. */
  started(nowMs: number): void;
  /** An execution has ended, for whatever reason. Every started execution ends once. */
  ended(stream: number, ending: Ending, startedMs: number, nowMs: number): void;
  /** The database recorded `tasks` completions. */
  completed(tasks: number): void;
  /** The database refused outcomes: their claims were lost. */
  refused(tasks: number): void;
  /** The database replied to these outcomes, recorded or refused. */
  answered(items: readonly Begun[], nowMs: number): void;
}

/**
 * Reports a step's reply to the meter: the tasks it claimed, and that all outcomes except the refused ones were
 * recorded.
 */
export function tellReply(
  meter: Meter,
  { claimed, refused, waitMs }: StepReply,
  step: {
    readonly want: number;
    readonly parcel: { readonly items: readonly Begun[] } | null;
    readonly sentMs: number;
    readonly nowMs: number;
  },
): void {
  const { want, parcel, sentMs, nowMs } = step;
  if (parcel !== null) {
    // guard: what was refused is not completed -> test/metrics/counts.test.ts: "a completion that the database refused does not count as completed"
    meter.completed(parcel.items.length /* guard:refused */ - refused /* end */);
    if (refused > 0) meter.refused(refused);
    meter.answered(parcel.items, nowMs);
  }
  if (want > 0) meter.claimed(claimed.length, nowMs - sentMs);
  if (waitMs !== null) meter.queued(waitMs);
  for (const { passed } of claimed) if (passed !== undefined) meter.passed(passed);
}

function nothing(): void {}

/** A meter that ignores everything. */
export const noMeter: Meter = Object.freeze({
  claimed: nothing,
  queued: nothing,
  passed: nothing,
  stepFailed: nothing,
  waited: nothing,
  started: nothing,
  ended: nothing,
  completed: nothing,
  refused: nothing,
  answered: nothing,
});
