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

describe("a single due tick", () => {
  test.each<Missed>(["skip", "once", "all"])("a single due tick is enqueued with missed: %s", (missed) => {
    const expected = { ticks: [10 * HOUR], nextAtMs: 11 * HOUR, dropped: false };
    expect(plan(missed, { from: 10 * HOUR, now: 10 * HOUR })).toEqual(expected);
    expect(plan(missed, { from: 10 * HOUR, now: 10 * HOUR + LATE_MS_MAX })).toEqual(expected);
  });
});

describe("missed ticks after hours without a worker", () => {
  const owed = { from: 10 * HOUR, now: 13 * HOUR + LATE_MS_MAX + 1 };

  test("missed: skip continues with the next tick", () => {
    expect(plan("skip", owed)).toEqual({ ticks: [], nextAtMs: 14 * HOUR, dropped: false });
  });

  test("missed: skip enqueues a tick that has just become due", () => {
    expect(plan("skip", { ...owed, now: 13 * HOUR + 5 })).toMatchObject({ ticks: [13 * HOUR] });
  });

  test("missed: once enqueues the latest missed tick", () => {
    expect(plan("once", owed)).toEqual({ ticks: [13 * HOUR], nextAtMs: 14 * HOUR, dropped: false });
  });

  test("missed: all enqueues every missed tick, oldest first", () => {
    expect(plan("all", owed)).toEqual({
      ticks: [10 * HOUR, 11 * HOUR, 12 * HOUR, 13 * HOUR],
      nextAtMs: 14 * HOUR,
      dropped: false,
    });
  });

  test("missed: all in pieces leaves the rest due", () => {
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

  test("missed: all drops ticks before the newest 1,000, and reports it", () => {
    const now = 5_000 * HOUR;
    const exactly = plan("all", { from: now - (MISSED_MAX - 1) * HOUR, now });
    expect(exactly.ticks).toHaveLength(MISSED_MAX);
    expect(exactly.dropped).toBe(false);
    const more = plan("all", { from: now - MISSED_MAX * HOUR, now });
    expect(more.ticks).toEqual(exactly.ticks);
    expect(more.dropped).toBe(true);
  });
});

test("a tick computed under older time zone rules is still enqueued", () => {
  expect(plan("all", { from: 10 * HOUR + 1, now: 10 * HOUR + 2 })).toEqual({
    ticks: [10 * HOUR + 1],
    nextAtMs: 11 * HOUR,
    dropped: false,
  });
});

test("an interval ticks at its multiples, independently of when it is set", () => {
  const timetable = everyTimetable(15_000);
  expect(timetable.next(0)).toBe(15_000);
  expect(timetable.next(14_999)).toBe(15_000);
  expect(timetable.last(30_000, 2)).toEqual([15_000, 30_000]);
  expect(timetable.last(29_999, 2)).toEqual([0, 15_000]);
});

test("the tick's time replaces the placeholder where it is a whole value", () => {
  const text = JSON.stringify({ at: tickTime, all: [tickTime], note: `not ${tickTime}` });
  const at = "1970-01-01T00:00:00.000Z";
  expect(JSON.parse(renderInput(text, 0))).toEqual({ at, all: [at], note: `not ${tickTime}` });
});
