import { SluiceError } from "../core/error.js";
import { checkInteger } from "../core/number.js";
import { everyTimetable, type Timetable } from "../core/schedule.js";
import { cronTimetable } from "./cron.js";

/** When a schedule ticks, in its stored form: a cron expression in a time zone, or an interval. */
export interface Timing {
  readonly cron: string | null;
  readonly timeZone: string | null;
  readonly everyMs: number | null;
}

const EVERY_RANGE = { min: 1_000, max: 366 * 24 * 3_600_000 };

/** Returns the ticks of a timing. Throws if the timing is invalid. */
export function timetableOf({ cron, timeZone, everyMs }: Timing): Timetable {
  return everyMs === null ? cronTimetable(cron, timeZone) : everyTimetable(everyMs);
}

/** Checks the timing options of a user. */
export function checkTiming(said: {
  readonly cron?: unknown;
  readonly timeZone?: unknown;
  readonly everyMs?: unknown;
}): Timing {
  if ((said.cron === undefined) === (said.everyMs === undefined)) throw refusal("pass exactly one of cron and everyMs");
  if (said.everyMs === undefined) return checkCron(said.cron, said.timeZone ?? "UTC");
  if (said.timeZone !== undefined) throw refusal("timeZone needs cron: everyMs has no time zone");
  return {
    cron: null,
    timeZone: null,
    everyMs: checkInteger("everyMs", said.everyMs, EVERY_RANGE),
  };
}

function checkCron(cron: unknown, timeZone: unknown): Timing {
  // An expression such as 30 February parses, but never ticks.
  cronTimetable(cron, timeZone).next(Date.now());
  return { cron: cron as string, timeZone: timeZone as string, everyMs: null };
}

function refusal(message: string): SluiceError {
  return new SluiceError("invalid_option", message, { details: { option: "everyMs" } });
}
