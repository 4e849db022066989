import { Cron } from "croner";
import { SluiceError } from "../core/error.js";
import { quote } from "../core/quote.js";
import type { Timetable } from "../core/schedule.js";
import { Zone } from "./zone.js";

const NICKNAMES = new Map([
  ["@yearly", "0 0 1 1 *"],
  ["@annually", "0 0 1 1 *"],
  ["@monthly", "0 0 1 * *"],
  ["@weekly", "0 0 * * 0"],
  ["@daily", "0 0 * * *"],
  ["@midnight", "0 0 * * *"],
  ["@hourly", "0 * * * *"],
]);
const LENGTH_MAX = 256;
// Excludes "?": it would stand for the time at which this process parsed the expression.
const FIELD = /^[\dA-Za-z*,/#-]+$/;

/**
 * Returns the ticks of a cron expression in a time zone. Changes of the clock are handled in one of two ways, as in
 * common cron implementations:
 * - If the hour field begins with `*`, the ticks follow elapsed time: a tick every 15 minutes stays that, also in the
 *   repeated hour.
 * - Otherwise each wall time that the expression names ticks once a day: a repeated time ticks the first time, and a
 *   skipped time ticks at the moment of the change.
 */
export function cronTimetable(expression: unknown, timeZone: unknown): Timetable {
  const pattern = patternOf(expression);
  const zone = Zone.of(timeZone);
  const hour = pattern.split(" ").at(-4)!;
  const passes = hour.startsWith("*");
  return passes ? ofPassingTime(parse(pattern, timeZone as string)) : ofTheWall(parse(pattern, "UTC"), zone);
}

function ofPassingTime(cron: Cron): Timetable {
  return {
    next: (afterMs) => next(cron, afterMs),
    last: (untilMs, max) => last(cron, untilMs, max),
  };
}

/** The calendar ignores time zones; the zone returns when its clock first shows the calendar's wall time. */
function ofTheWall(calendar: Cron, zone: Zone): Timetable {
  return {
    next: (afterMs) => zone.firstShown(next(calendar, zone.shownUntil(afterMs))),
    last(untilMs, max) {
      const walls = last(calendar, zone.shownUntil(untilMs), max);
      return [...new Set(walls.map((wall) => zone.firstShown(wall)))];
    },
  };
}

function next(cron: Cron, afterMs: number): number {
  const date = cron.nextRun(new Date(afterMs));
  if (date !== null) return date.getTime();
  throw new SluiceError("invalid_cron", `cron ${quote(cron.getPattern())} never matches a time`, {
    details: { option: "cron" },
  });
}

/** The parser searches before a given second, so one second is added: a tick at exactly this second counts. */
function last(cron: Cron, untilMs: number, max: number): number[] {
  const before = new Date(untilMs + 1000);
  return cron
    .previousRuns(max, before)
    .map((date) => date.getTime())
    .toReversed();
}

function patternOf(expression: unknown): string {
  if (typeof expression !== "string" || expression.length > LENGTH_MAX) throw refusal(expression);
  const text = expression.trim();
  const fields = (NICKNAMES.get(text.toLowerCase()) ?? text).split(/\s+/);
  if (fields.length < 5 || fields.length > 6 || !fields.every((field) => FIELD.test(field))) throw refusal(expression);
  return fields.join(" ");
}

function parse(pattern: string, timezone: string): Cron {
  try {
    return new Cron(pattern, { timezone, mode: "5-or-6-parts", paused: true });
  } catch (cause) {
    throw refusal(pattern, cause);
  }
}

function refusal(expression: unknown, cause?: unknown): SluiceError {
  const why = cause instanceof Error ? `: ${cause.message.slice(0, 200)}` : "";
  return new SluiceError(
    "invalid_cron",
    `cron ${quote(expression)} is not valid${why}. Use 5 fields (minute, hour, day of the month, month, ` +
      "day of the week) or 6 (with the second first)",
    { cause, details: { option: "cron" } },
  );
}
