import { describe, expect, test } from "vitest";
import { cronTimetable } from "../../src/schedules/cron.js";
import { caught } from "../core/caught.js";

const iso = (ms: number): string => new Date(ms).toISOString().replace(":00.000Z", "Z");

/** The first ticks after a time, as short texts. */
function ticks(cron: string, zone: string, after: string, count: number): string[] {
  const timetable = cronTimetable(cron, zone);
  const found: number[] = [];
  for (let at = Date.parse(after); found.length < count; found.push(at)) at = timetable.next(at);
  return found.map(iso);
}

describe("in the hour that DST skips,", () => {
  // Berlin: 02:00 becomes 03:00 at 01:00 UTC.
  const before = "2026-03-28T12:00Z";
  const cases: [string, string, string[]][] = [
    [
      "a daily time that does not exist ticks at the DST change",
      "30 2 * * *",
      ["2026-03-29T01:00Z", "2026-03-30T00:30Z", "2026-03-31T00:30Z"],
    ],
    [
      "one of two daily times that does not exist ticks at the DST change",
      "0 2,14 * * *",
      ["2026-03-28T13:00Z", "2026-03-29T01:00Z", "2026-03-29T12:00Z", "2026-03-30T00:00Z"],
    ],
    [
      "several times that do not exist tick once, at the DST change",
      "*/15 2,3 * * *",
      ["2026-03-29T01:00Z", "2026-03-29T01:15Z", "2026-03-29T01:30Z", "2026-03-29T01:45Z"],
    ],
    ["other daily times are unaffected", "30 3 * * *", ["2026-03-29T01:30Z"]],
  ];
  test.each(cases)("%s", (_, cron, expected) => {
    expect(ticks(cron, "Europe/Berlin", before, expected.length)).toEqual(expected);
  });

  test("a half-hourly schedule keeps its interval", () => {
    expect(ticks("*/30 * * * *", "Europe/Berlin", "2026-03-29T00:15Z", 4)).toEqual([
      "2026-03-29T00:30Z",
      "2026-03-29T01:00Z",
      "2026-03-29T01:30Z",
      "2026-03-29T02:00Z",
    ]);
  });
});

describe("in the hour that DST repeats,", () => {
  // Berlin: 03:00 becomes 02:00 at 01:00 UTC.
  const before = "2026-10-24T12:00Z";
  const cases: [string, string, string[]][] = [
    ["a daily time ticks only in the first pass", "30 2 * * *", ["2026-10-25T00:30Z", "2026-10-26T01:30Z"]],
    [
      "two daily times tick only in the first pass",
      "0 2,14 * * *",
      ["2026-10-25T00:00Z", "2026-10-25T13:00Z", "2026-10-26T01:00Z"],
    ],
    [
      "several times within that hour tick only in the first pass",
      "*/20 2 * * *",
      ["2026-10-25T00:00Z", "2026-10-25T00:20Z", "2026-10-25T00:40Z", "2026-10-26T01:00Z"],
    ],
    ["a time in the next hour ticks one hour later", "0 3 * * *", ["2026-10-25T02:00Z"]],
  ];
  test.each(cases)("%s", (_, cron, expected) => {
    expect(ticks(cron, "Europe/Berlin", before, expected.length)).toEqual(expected);
  });

  test("a daily time that is set in the second pass ticks the next day", () => {
    expect(ticks("30 2 * * *", "Europe/Berlin", "2026-10-25T01:10Z", 1)).toEqual(["2026-10-26T01:30Z"]);
  });

  test("a half-hourly schedule ticks in both passes", () => {
    expect(ticks("*/30 * * * *", "Europe/Berlin", "2026-10-24T23:45Z", 6)).toEqual([
      "2026-10-25T00:00Z",
      "2026-10-25T00:30Z",
      "2026-10-25T01:00Z",
      "2026-10-25T01:30Z",
      "2026-10-25T02:00Z",
      "2026-10-25T02:30Z",
    ]);
  });
});

describe("a cron expression supports", () => {
  const cases: [string, string, string, string, string[]][] = [
    ["the leap day", "0 0 29 2 *", "UTC", "2026-01-01", ["2028-02-29T00:00Z", "2032-02-29T00:00Z"]],
    [
      "the 31st in months that have one",
      "0 0 31 * *",
      "UTC",
      "2026-03-31T00:00Z",
      ["2026-05-31T00:00Z", "2026-07-31T00:00Z"],
    ],
    ["the last day of a month", "0 0 L * *", "UTC", "2028-01-31T00:00Z", ["2028-02-29T00:00Z", "2028-03-31T00:00Z"]],
    ["a quarter of an hour", "*/15 * * * *", "UTC", "2026-01-01T00:44:59Z", ["2026-01-01T00:45Z", "2026-01-01T01:00Z"]],
    [
      "a day of the month or of the week, whichever matches",
      "0 0 13 * FRI",
      "UTC",
      "2026-11-07T00:00Z",
      ["2026-11-13T00:00Z", "2026-11-20T00:00Z"],
    ],
    ["Sunday by either number", "0 0 * * 7", "UTC", "2026-11-09T00:00Z", ["2026-11-15T00:00Z"]],
    ["the second Friday", "0 0 * * FRI#2", "UTC", "2026-11-01T00:00Z", ["2026-11-13T00:00Z"]],
    ["a time zone with a half-hour offset", "0 9 * * *", "Asia/Kolkata", "2026-11-15T00:00Z", ["2026-11-15T03:30Z"]],
    ["a time zone behind UTC", "0 17 * * 1-5", "America/New_York", "2026-11-13T23:00Z", ["2026-11-16T22:00Z"]],
    [
      "a DST change of half an hour",
      "15 2 * * *",
      "Australia/Lord_Howe",
      "2026-10-03T00:00Z",
      ["2026-10-03T15:30Z", "2026-10-04T15:15Z"],
    ],
    [
      "a DST change at midnight",
      "0 0 * * *",
      "America/Santiago",
      "2026-09-05T05:00Z",
      ["2026-09-06T04:00Z", "2026-09-07T03:00Z"],
    ],
    [
      "a skipped calendar day",
      "0 12 * * *",
      "Pacific/Apia",
      "2011-12-29T12:00Z",
      ["2011-12-29T22:00Z", "2011-12-30T10:00Z", "2011-12-30T22:00Z"],
    ],
    ["@daily", "@daily", "Asia/Tokyo", "2026-11-15T00:00Z", ["2026-11-15T15:00Z"]],
    ["@hourly", "@Hourly", "UTC", "2026-11-15T00:00Z", ["2026-11-15T01:00Z"]],
  ];
  test.each(cases)("%s", (_, cron, zone, after, expected) => {
    expect(ticks(cron, zone, after, expected.length)).toEqual(expected);
  });

  test("six fields, of which the first is the second", () => {
    const next = cronTimetable("*/20 * * * * *", "UTC").next(Date.parse("2026-01-01T00:00:20.500Z"));
    expect(new Date(next).toISOString()).toBe("2026-01-01T00:00:40.000Z");
  });
});

/** Every minute of a period, with the local time in the zone. */
function minutesOf(zone: string, from: number, to: number): { at: number; wall: string }[] {
  const format = new Intl.DateTimeFormat("en-GB", {
    timeZone: zone,
    dateStyle: "short",
    timeStyle: "short",
    hourCycle: "h23",
  });
  return Array.from({ length: (to - from) / 60_000 }, (_, i) => {
    const at = from + i * 60_000;
    return { at, wall: format.format(at) };
  });
}

const DAY = 24 * 3_600_000;
const STEPS: [string, string][] = [
  ["Europe/Berlin", "2026-03-29T01:00Z"],
  ["Europe/Berlin", "2026-10-25T01:00Z"],
  ["America/New_York", "2026-03-08T07:00Z"],
  ["America/New_York", "2026-11-01T06:00Z"],
  ["Australia/Lord_Howe", "2026-04-04T15:00Z"],
  ["Australia/Lord_Howe", "2026-10-03T15:30Z"],
  ["America/Santiago", "2026-04-05T03:00Z"],
  ["America/Santiago", "2026-09-06T04:00Z"],
  ["Africa/Casablanca", "2026-02-15T02:00Z"],
  ["Africa/Casablanca", "2026-03-22T02:00Z"],
];

describe.each(STEPS)("around the clock change of %s at %s,", (zone, step) => {
  const from = Date.parse(step) - 2 * DAY;
  const to = Date.parse(step) + 2 * DAY;
  const minutes = minutesOf(zone, from, to);

  /** Every tick from the first minute on, computed without a clock. */
  const all = (cron: string): number[] => {
    const timetable = cronTimetable(cron, zone);
    const found: number[] = [];
    for (let at = timetable.next(from - 1); at < to; at = timetable.next(at)) found.push(at);
    return found;
  };

  test.each([7, 10, 15, 30])(
    "a schedule every %i minutes ticks exactly when the local clock shows those minutes",
    (n) => {
      const expected = minutes.filter(({ wall }) => Number(wall.slice(-2)) % n === 0);
      expect(all(`*/${n} * * * *`).map(iso)).toEqual(expected.map(({ at }) => iso(at)));
    },
  );

  test("a daily schedule ticks once a day, when the local clock first shows or skips its time", () => {
    for (let hour = 0; hour < 24; hour++) {
      for (const minute of [0, 30, 59]) {
        const time = `${String(hour).padStart(2, "0")}:${String(minute).padStart(2, "0")}`;
        expect(all(`${minute} ${hour} * * *`).map(iso), time).toEqual(firstShown(minutes, time));
      }
    }
  });

  test("previous ticks agree with next ticks", () => {
    const atStep = Date.parse(step);
    const looks = [-1, 0, 1, 29, 30, 59, 60, 90, 120, 600].map((min) => atStep + min * 60_000);
    for (const cron of ["*/7 * * * *", "30 */2 * * *", "*/20 0-4 * * *", "15 2,23 * * *"]) {
      const expected = all(cron);
      const { last } = cronTimetable(cron, zone);
      for (const until of looks) {
        const past = expected.filter((at) => at <= until);
        const found = last(until, 20).filter((at) => at >= from);
        // Skipped times are one tick, so they count as one here.
        expect(found.length, cron).toBeGreaterThanOrEqual(Math.min(past.length, 17));
        expect(found.map(iso), cron).toEqual(past.slice(-found.length).map(iso));
      }
    }
  });
});

/** For each local day, the first minute at which the local clock shows or has passed this time. */
function firstShown(minutes: readonly { at: number; wall: string }[], time: string): string[] {
  const found = new Map<string, number>();
  const begins = minutes[0]!.wall;
  for (const { at, wall } of minutes) {
    const [day, shown] = wall.split(", ") as [string, string];
    if (shown >= time && !found.has(day)) found.set(day, at);
  }
  // The first day is partial: it counts only if it began before that time.
  const [day, shown] = begins.split(", ") as [string, string];
  if (shown > time) found.delete(day);
  return [...found.values()].map(iso);
}

describe("a cron expression refuses", () => {
  const bad: [string, unknown][] = [
    ["nothing", ""],
    ["a number", 5],
    ["null", null],
    ["four fields", "* * * *"],
    ["seven fields", "0 0 0 1 1 * 2026"],
    ["a minute 60", "60 * * * *"],
    ["a day 0", "0 0 0 * *"],
    ["a step of 0", "*/0 * * * *"],
    ["a step from a number", "5/5 * * * *"],
    ["words", "every day at three"],
    ["a date", "2026-01-01T00:00:00"],
    ["@reboot", "@reboot"],
    ["a question mark, which would mean now", "? * * * *"],
    ["a very long one", `${"0,".repeat(200)}0 * * * *`],
  ];
  test.each(bad)("%s", (_, cron) => {
    expect(caught(() => cronTimetable(cron, "UTC"))).toMatchObject({ code: "invalid_cron" });
  });

  test("a day that never comes", () => {
    expect(caught(() => cronTimetable("0 0 30 2 *", "UTC").next(0))).toMatchObject({
      code: "invalid_cron",
    });
  });

  test.each([["Mars/Phobos"], [""], ["+02:00"], [7], [null], ["Europe/Berlin; drop table"]])("time zone %s", (zone) => {
    expect(caught(() => cronTimetable("0 3 * * *", zone))).toMatchObject({
      code: "invalid_time_zone",
    });
  });
});
