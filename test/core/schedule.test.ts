import { describe, expect, test } from "vitest";
import {
  everyTimetable,
  LATE_MS_MAX,
  MISSED_MAX,
  planTicks,
  renderInput,
  tickTime,
  type Missed,
} from "../../src/core/schedule.js";

const HOUR = 3_600_000;
const hourly = everyTimetable(HOUR);

function plan(missed: Missed, owed: { from: number; now: number; max?: number }) {
  const { from, now, max = 5_000 } = owed;
  return planTicks(hourly, { missed, nextAtMs: from, nowMs: now, ticksMax: max });
}

describe("a tick that is due and no other", () => {
  test.each<Missed>(["skip", "once", "all"])("is enqueued with %s", (missed) => {
    const expected = { ticks: [10 * HOUR], nextAtMs: 11 * HOUR, dropped: false };
    expect(plan(missed, { from: 10 * HOUR, now: 10 * HOUR })).toEqual(expected);
    expect(plan(missed, { from: 10 * HOUR, now: 10 * HOUR + LATE_MS_MAX })).toEqual(expected);
  });
});

describe("after hours without anybody", () => {
  const owed = { from: 10 * HOUR, now: 13 * HOUR + LATE_MS_MAX + 1 };

  test("skip goes on with the next tick", () => {
    expect(plan("skip", owed)).toEqual({ ticks: [], nextAtMs: 14 * HOUR, dropped: false });
  });

  test("skip enqueues one that has only just come", () => {
    expect(plan("skip", { ...owed, now: 13 * HOUR + 5 })).toMatchObject({ ticks: [13 * HOUR] });
  });

  test("once makes up for the latest", () => {
    expect(plan("once", owed)).toEqual({ ticks: [13 * HOUR], nextAtMs: 14 * HOUR, dropped: false });
  });

  test("all makes up for each, oldest first", () => {
    expect(plan("all", owed)).toEqual({
      ticks: [10 * HOUR, 11 * HOUR, 12 * HOUR, 13 * HOUR],
      nextAtMs: 14 * HOUR,
      dropped: false,
    });
  });

  test("all in pieces leaves the rest owed", () => {
    const first = plan("all", { ...owed, max: 3 });
    expect(first).toEqual({
      ticks: [10 * HOUR, 11 * HOUR, 12 * HOUR],
      nextAtMs: 13 * HOUR,
      dropped: false,
    });
    expect(plan("all", { ...owed, from: first.nextAtMs, max: 3 })).toMatchObject({
      ticks: [13 * HOUR],
      nextAtMs: 14 * HOUR,
    });
  });

  test("all gives up those before the newest thousand, and says so", () => {
    const now = 5_000 * HOUR;
    const exactly = plan("all", { from: now - (MISSED_MAX - 1) * HOUR, now });
    expect(exactly.ticks).toHaveLength(MISSED_MAX);
    expect(exactly.dropped).toBe(false);
    const more = plan("all", { from: now - MISSED_MAX * HOUR, now });
    expect(more.ticks).toEqual(exactly.ticks);
    expect(more.dropped).toBe(true);
  });
});

test("a tick that was computed by other rules of its zone is enqueued all the same", () => {
  expect(plan("all", { from: 10 * HOUR + 1, now: 10 * HOUR + 2 })).toEqual({
    ticks: [10 * HOUR + 1],
    nextAtMs: 11 * HOUR,
    dropped: false,
  });
});

test("an interval ticks at its multiples, whenever it is set", () => {
  const timetable = everyTimetable(15_000);
  expect(timetable.next(0)).toBe(15_000);
  expect(timetable.next(14_999)).toBe(15_000);
  expect(timetable.last(30_000, 2)).toEqual([15_000, 30_000]);
  expect(timetable.last(29_999, 2)).toEqual([0, 15_000]);
});

test("the tick's time takes the place of the mark, where that is a value of its own", () => {
  const text = JSON.stringify({ at: tickTime, all: [tickTime], note: `not ${tickTime}` });
  const at = "1970-01-01T00:00:00.000Z";
  expect(JSON.parse(renderInput(text, 0))).toEqual({ at, all: [at], note: `not ${tickTime}` });
});
