import { describe, expect, test } from "vitest";
import type { Missed } from "../../src/core/schedule.js";
import { echoing, hours, stage, violations } from "./stage.js";

const DAY = "2026-01-01";

test("a tick is enqueued at its time and not before", async () => {
  const s = await stage();
  const set = await s.sluice.schedules.set("hourly", echoing());
  expect(set).toMatchObject({ nextAt: new Date(`${DAY}T01:00Z`), lastAt: null, lastTaskId: null });
  await s.setClock(`${DAY}T00:59:59.999Z`);
  expect(await s.keep()).toBe(0);
  await s.setClock(`${DAY}T01:00:00Z`);
  expect(await s.keep()).toBe(1);
  expect(await s.keep()).toBe(0);
  expect(await s.ticks()).toEqual(hours(DAY, 1));
  const { rows } = await s.sql.query<{ id: string }>("select id::text as id from sluice.task");
  expect(await s.sluice.schedules.get("hourly")).toMatchObject({
    nextAt: new Date(`${DAY}T02:00Z`),
    lastAt: new Date(`${DAY}T01:00Z`),
    lastTaskId: rows[0]!.id,
    trouble: null,
  });
  await violations(s);
});

describe("after hours without a worker,", () => {
  const cases: [Missed | undefined, number[]][] = [
    ["skip", [5]],
    ["once", [4, 5]],
    [undefined, [4, 5]],
    ["all", [1, 2, 3, 4, 5]],
  ];
  test.each(cases)("missed: %s enqueues the ticks of the hours %j", async (missed, expected) => {
    const s = await stage();
    await s.sluice.schedules.set("hourly", echoing(missed === undefined ? {} : { missed }));
    await s.setClock(`${DAY}T04:30Z`);
    await s.keep();
    expect((await s.sluice.schedules.get("hourly")).nextAt).toEqual(new Date(`${DAY}T05:00Z`));
    await s.setClock(`${DAY}T05:00Z`);
    await s.keep();
    expect(await s.ticks()).toEqual(hours(DAY, ...expected));
  });
});

test("missed: skip still enqueues a tick that is slightly late", async () => {
  const s = await stage();
  await s.sluice.schedules.set("hourly", echoing({ missed: "skip" }));
  await s.setClock(`${DAY}T01:01:00Z`);
  expect(await s.keep()).toBe(1);
});

test("missed: all enqueues the newest thousand ticks in order and reports that it dropped others", async () => {
  const s = await stage();
  const told: string[] = [];
  const warn = (message: string): void => void told.push(message);
  await s.sluice.schedules.set("often", echoing({ everyMs: 1_000, missed: "all" }));
  await s.setClock("2026-01-01T01:30Z");
  expect(await s.keep({ debug: warn, info: warn, warn, error: warn })).toBe(1_000);
  const ticks = await s.ticks();
  const last = Date.parse("2026-01-01T01:30Z");
  expect(ticks).toEqual(Array.from({ length: 1_000 }, (_, i) => new Date(last - (999 - i) * 1_000).toISOString()));
  expect(new Set(told)).toEqual(new Set(["a schedule missed more ticks than it catches up on"]));
  expect((await s.sluice.schedules.get("often")).nextAt).toEqual(new Date(last + 1_000));
});

test("missed ticks with large inputs are enqueued in batches", async () => {
  const s = await stage();
  const input = { at: "", note: "x".repeat(1_000_000) };
  await s.sluice.schedules.set("large", echoing({ missed: "all", input }));
  await s.setClock(`${DAY}T09:30Z`);
  expect(await s.keep()).toBe(9);
});

test("a daily schedule in Berlin ticks once on the day that DST ends", async () => {
  const s = await stage();
  await s.setClock("2026-10-24T12:00Z");
  const berlin = { cron: "30 2 * * *", timeZone: "Europe/Berlin" };
  await s.sluice.schedules.set("report", echoing(berlin));
  for (const at of ["2026-10-25T00:30Z", "2026-10-25T01:30Z", "2026-10-26T01:30Z"]) {
    await s.setClock(at);
    await s.keep();
  }
  expect(await s.ticks()).toEqual(["2026-10-25T00:30:00.000Z", "2026-10-26T01:30:00.000Z"]);
});
