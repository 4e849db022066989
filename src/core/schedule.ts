/** What becomes of ticks whose time has passed while nobody was there to enqueue them. */
export type Missed = "skip" | "once" | "all";

/**
 * Stands for the time of the tick in a schedule's input: wherever this text is a value of its own, the
 * task gets the time at which its tick was due, as ISO 8601 text in UTC.
 */
export const tickTime: string = "sluice:tick-time:5b1c0f7e";

/** When a schedule ticks. Times are ms since 1970. */
export interface Timetable {
  /** The first tick after this time. Throws if none ever comes. */
  readonly next: (afterMs: number) => number;
  /** The last ticks up to and at this time, at most so many, ascending. */
  readonly last: (untilMs: number, max: number) => readonly number[];
}

/** A tick that is enqueued no later than this is not a missed one. */
export const LATE_MS_MAX = 60_000;
/** With "all", only so many of the newest missed ticks are made up for. */
export const MISSED_MAX = 1_000;

/** Ticks at every multiple of so many ms since 1970, so that every process means the same ones. */
export function everyTimetable(everyMs: number): Timetable {
  const at = (ms: number): number => Math.floor(ms / everyMs) * everyMs;
  return {
    next: (afterMs) => at(afterMs) + everyMs,
    last: (untilMs, max) => Array.from({ length: max }, (_, i) => at(untilMs) - (max - 1 - i) * everyMs),
  };
}

/** A schedule whose time has come. */
interface Owed {
  readonly missed: Missed;
  /** The oldest tick that was not enqueued. */
  readonly nextAtMs: number;
  readonly nowMs: number;
  /** At most so many ticks at once; the rest stays owed. */
  readonly ticksMax: number;
}

/** What to do about it. */
export interface TickPlan {
  /** The ticks to enqueue, ascending. */
  readonly ticks: readonly number[];
  /** The tick after those. */
  readonly nextAtMs: number;
  /** Some ticks before those are given up: there were more than MISSED_MAX. */
  readonly dropped: boolean;
}

/** Decides which of the ticks that are due are enqueued, and which comes next. */
export function planTicks(timetable: Timetable, owed: Owed): TickPlan {
  const { missed, nextAtMs, nowMs, ticksMax } = owed;
  const found = owedTicks(timetable, owed);
  // Whoever computed it had other rules for its time zone: it is owed all the same.
  const due = found.length === 0 ? [nextAtMs] : found;
  const wanted = missed === "skip" ? due.filter((tick) => nowMs - tick <= LATE_MS_MAX) : due;
  const ticks = wanted.slice(0, ticksMax);
  return {
    ticks,
    nextAtMs: wanted[ticksMax] ?? timetable.next(nowMs),
    dropped: missed === "all" && due.length === MISSED_MAX && due[0]! > nextAtMs,
  };
}

/** Ticks are costly to compute, and mostly one is owed: further back only while all found are. */
function owedTicks(timetable: Timetable, { missed, nextAtMs, nowMs }: Owed): number[] {
  const most = missed === "all" ? MISSED_MAX : 1;
  for (let max = Math.min(2, most); ; max = Math.min(4 * max, most)) {
    const found = timetable.last(nowMs, max);
    const complete = found.length === 0 || found[0]! < nextAtMs || max === most;
    if (complete) return found.filter((tick) => tick >= nextAtMs);
  }
}

/** The input of a tick: the JSON text with the tick's time in the place of the mark. */
export function renderInput(text: string, tickMs: number): string {
  const time = JSON.stringify(new Date(tickMs).toISOString());
  return text.replaceAll(JSON.stringify(tickTime), time);
}
