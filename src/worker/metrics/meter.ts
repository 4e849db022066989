import type { Passed } from "../../postgres/passed.js";
import type { StepReply } from "../../postgres/step.js";

/** How an execution came to its end, as far as the worker knows: what of it the database took is told apart. */
export type Ending = "succeeded" | "retried" | "failed" | "cancelled" | "snoozed" | "waiting" | "released" | "lost";

/** Whose connections: claims and settles, transactions of handlers, enqueue and queries. */
type Pool = "claim" | "handlers" | "api";

/** Something that a handler has begun: by the clock of the worker. */
export interface Begun {
  readonly startedMs: number;
}

/**
 * What claimer and crew tell while they work: metrics count it, pressure watches it. Called on the hot
 * path: every argument is a number, a constant or a list that is there anyway, and whoever listens makes
 * nothing anew per task and never throws. All times are by the worker's monotonic clock.
 */
export interface Meter {
  /** A claim was answered, with so many tasks. */
  claimed(tasks: number, tookMs: number): void;
  /** A task had been due for so long when it was claimed. At most one per claim. */
  queued(waitMs: number): void;
  /** A task with limits was claimed, and has passed these. */
  passed(limits: Passed): void;
  /** A claim, or the recording of outcomes, got no answer or an error. */
  stepFailed(): void;
  /** Somebody had to wait so long for a connection of the pool. */
  waited(pool: Pool, ms: number): void;
  /** A handler is about to be called. */
  started(nowMs: number): void;
  /** An execution has ended, for whatever reason: each that was started ends once. */
  ended(stream: number, ending: Ending, startedMs: number, nowMs: number): void;
  /** The database took so many completions. */
  completed(tasks: number): void;
  /** The database refused outcomes: their claims were lost. */
  refused(tasks: number): void;
  /** These were answered by the database, whatever it said. */
  answered(items: readonly Begun[], nowMs: number): void;
}

/** Tells what a step's reply says: what it claimed, and that all but those refused were taken. */
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
    // guard: what was refused is not completed -> test/metrics/counts.test.ts: "what the database refused is not completed"
    meter.completed(parcel.items.length /* guard:refused */ - refused /* end */);
    if (refused > 0) meter.refused(refused);
    meter.answered(parcel.items, nowMs);
  }
  if (want > 0) meter.claimed(claimed.length, nowMs - sentMs);
  if (waitMs !== null) meter.queued(waitMs);
  for (const { passed } of claimed) if (passed !== undefined) meter.passed(passed);
}

function nothing(): void {}

/** For whoever does not want to know. */
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
