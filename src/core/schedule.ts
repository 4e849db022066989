/** What happens to ticks that were due while no process was running to enqueue them. */
export type Missed = "skip" | "once" | "all";

/**
 * A placeholder for the time of the tick in a schedule's input. Wherever this text is a complete value, the task
 * receives the time at which its tick was due, as ISO 8601 text in UTC.
 */
export const tickTime: string = "sluice:tick-time:5b1c0f7e";

/** When a schedule ticks. Times are ms since 1970. */
export interface Timetable {
  /** Returns the first tick after this time. Throws if there is none. */
  readonly next: (afterMs: number) => number;
  /** Returns the last ticks up to and including this time, at most `max`, ascending. */
  readonly last: (untilMs: number, max: number) => readonly number[];
}

/** A tick enqueued with at most this delay does not count as missed. */
export const LATE_MS_MAX = 60_000;
/** With "all", only this many of the newest missed ticks are enqueued. */
export const MISSED_MAX = 1_000;

/** Ticks at every multiple of `everyMs` since 1970, so that all processes compute the same ticks. */
export function everyTimetable(everyMs: number): Timetable {
  const at = (ms: number): number => Math.floor(ms / everyMs) * everyMs;
  return {
    next: (afterMs) => at(afterMs) + everyMs,
    last: (untilMs, max) => Array.from({ length: max }, (_, i) => at(untilMs) - (max - 1 - i) * everyMs),
  };
}

/** A schedule that is due. */
interface Owed {
  readonly missed: Missed;
  /** The oldest tick that was not enqueued. */
  readonly nextAtMs: number;
  readonly nowMs: number;
  /** The maximum number of ticks to enqueue at once; the rest stays due. */
  readonly ticksMax: number;
}

/** The ticks to enqueue now, and the next one. */
export interface TickPlan {
  /** The ticks to enqueue, ascending. */
  readonly ticks: readonly number[];
  /** The tick after those. */
  readonly nextAtMs: number;
  /** Whether older ticks are dropped because there were more than MISSED_MAX. */
  readonly dropped: boolean;
}

/** Decides which of the due ticks are enqueued, and which tick comes next. */
export function planTicks(timetable: Timetable, owed: Owed): TickPlan {
  const { missed, nextAtMs, nowMs, ticksMax } = owed;
  const found = owedTicks(timetable, owed);
  // The process that computed this tick had other rules for its time zone; the tick is still due.
  const due = found.length === 0 ? [nextAtMs] : found;
  const wanted = missed === "skip" ? due.filter((tick) => nowMs - tick <= LATE_MS_MAX) : due;
  const ticks = wanted.slice(0, ticksMax);
  return {
    ticks,
    nextAtMs: wanted[ticksMax] ?? timetable.next(nowMs),
    dropped: missed === "all" && due.length === MISSED_MAX && due[0]! > nextAtMs,
  };
}

/**
 * Ticks are expensive to compute, and usually only one is due: search further back only while all ticks found are due.
 */
function owedTicks(timetable: Timetable, { missed, nextAtMs, nowMs }: Owed): number[] {
  const most = missed === "all" ? MISSED_MAX : 1;
  for (let max = Math.min(2, most); ; max = Math.min(4 * max, most)) {
    const found = timetable.last(nowMs, max);
    const complete = found.length === 0 || found[0]! < nextAtMs || max === most;
    if (complete) return found.filter((tick) => tick >= nextAtMs);
  }
}

/** Returns the input of a tick: the JSON text with the placeholder replaced by the tick's time. */
export function renderInput(text: string, tickMs: number): string {
  const time = JSON.stringify(new Date(tickMs).toISOString());
  return text.replaceAll(JSON.stringify(tickTime), time);
}
