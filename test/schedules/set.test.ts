import { describe, expect, test } from "vitest";
import { z } from "zod";
import { limit, task, tickTime } from "../../src/index.js";
import { codeOf } from "../client/house.js";
import { spawnTs } from "../support/process.js";
import { echo, echoing, hours, stage, type Stage } from "./stage.js";

const DAY = "2026-01-01";
const SETTER = "test/schedules/programs/setter.ts";

async function revision({ sql }: Stage): Promise<string> {
  const { rows } = await sql.query<{ r: string }>("select revision::text as r from sluice.schedule");
  return rows.map((row) => row.r).join();
}

test("a schedule reads back as it was set", async () => {
  const s = await stage();
  const spec = {
    cron: "0 3 * * *",
    timeZone: "Europe/Berlin",
    missed: "skip",
    priority: 7,
  } as const;
  const status = await s.sluice.schedules.set("b", echoing(spec));
  expect(status).toEqual({
    name: "b",
    type: "echo",
    queue: "default",
    cron: "0 3 * * *",
    timeZone: "Europe/Berlin",
    everyMs: null,
    missed: "skip",
    enabled: true,
    paused: false,
    nextAt: new Date(`${DAY}T02:00Z`),
    lastAt: null,
    lastTaskId: null,
    trouble: null,
  });
  await s.sluice.schedules.set("a", echoing({ everyMs: 60_000 }));
  expect(await s.sluice.schedules.get("b")).toEqual(status);
  const list = await s.sluice.schedules.list();
  expect(list.map(({ name, everyMs }) => [name, everyMs])).toEqual([
    ["a", 60_000],
    ["b", null],
  ]);
  expect(await s.sluice.schedules.list({ after: "a", max: 1 })).toEqual([status]);
  expect(await s.sluice.schedules.remove("b")).toBe(true);
  expect(await s.sluice.schedules.remove("b")).toBe(false);
  expect((await s.sluice.schedules.list()).map(({ name }) => name)).toEqual(["a"]);
});

test("ten processes that set the same schedule concurrently create it once, and setting it again changes nothing", async () => {
  const s = await stage();
  const start = await s.sql.connect();
  await start.query("select pg_advisory_lock(1)");
  const all = Array.from({ length: 10 }, () => spawnTs(SETTER, [s.url]));
  await Promise.all(all.map((p) => p.line((line) => line === "ready")));
  await start.query("select pg_advisory_unlock(1)");
  start.release();
  const said = await Promise.all(all.map((p) => p.line((line) => line.startsWith("{"))));
  expect(await Promise.all(all.map((p) => p.exit))).toEqual(all.map(() => 0));
  expect(new Set(said).size).toBe(1);
  const first = await revision(s);
  expect(first).toMatch(/^\d+$/);
  await s.setClock(`${DAY}T00:45Z`);
  expect(await spawnTs(SETTER, [s.url]).line((line) => line.startsWith("{"))).toBe(said[0]);
  expect(await revision(s)).toBe(first);
}, 120_000);

describe("a changed schedule", () => {
  test("keeps an overdue tick if its timing is unchanged, and enqueues it with the new input", async () => {
    const s = await stage();
    await s.sluice.schedules.set("hourly", echoing());
    await s.setClock(`${DAY}T01:00:05Z`);
    const status = await s.sluice.schedules.set("hourly", echoing({ input: { at: tickTime, note: "new" } }));
    expect(status.nextAt).toEqual(new Date(`${DAY}T01:00Z`));
    expect(await s.keep()).toBe(1);
    const { rows } = await s.sql.query("select input from sluice.task");
    expect(rows).toEqual([{ input: { at: `${DAY}T01:00:00.000Z`, note: "new" } }]);
  });

  test("computes its next tick from now if its timing changes", async () => {
    const s = await stage();
    await s.sluice.schedules.set("report", echoing({ cron: "0 3 * * *" }));
    await s.setClock(`${DAY}T01:10Z`);
    const status = await s.sluice.schedules.set("report", echoing({ cron: "0 * * * *" }));
    expect(status.nextAt).toEqual(new Date(`${DAY}T02:00Z`));
    expect(await s.keep()).toBe(0);
  });

  test("enqueues ticks due under the old timing before it continues with the new one", async () => {
    const s = await stage();
    await s.sluice.schedules.set("report", echoing({ cron: "0 3 * * *", missed: "once" }));
    await s.setClock(`${DAY}T05:30Z`);
    const status = await s.sluice.schedules.set("report", echoing({ cron: "0 4 * * *" }));
    expect(status.nextAt).toEqual(new Date("2026-01-02T04:00Z"));
    expect(await s.ticks()).toEqual(hours(DAY, 3));
    expect(await s.keep()).toBe(0);
  });

  test("does not enqueue a tick twice, even if the clock was set back", async () => {
    const s = await stage();
    await s.sluice.schedules.set("hourly", echoing());
    await s.setClock(`${DAY}T01:00Z`);
    await s.keep();
    await s.setClock(`${DAY}T00:40Z`);
    const { nextAt } = await s.sluice.schedules.set("hourly", echoing({ cron: "0,30 * * * *" }));
    expect(nextAt).toEqual(new Date(`${DAY}T01:30Z`));
    await s.setClock(`${DAY}T01:30Z`);
    await s.keep();
    expect((await s.ticks()).map((at) => at.slice(11, 16))).toEqual(["01:00", "01:30"]);
  });
});

test("a schedule that is removed and set again does not enqueue a tick twice, even if the clock was set back", async () => {
  const s = await stage();
  await s.sluice.schedules.set("hourly", echoing({ missed: "all" }));
  await s.setClock(`${DAY}T01:00Z`);
  await s.keep();
  await s.sluice.schedules.remove("hourly");
  await s.setClock(`${DAY}T00:40Z`);
  const another = { at: tickTime, note: "another" };
  await s.sluice.schedules.set("hourly", echoing({ missed: "all", input: another }));
  await s.setClock(`${DAY}T02:00Z`);
  await s.keep();
  await s.setClock(`${DAY}T03:00Z`);
  await s.keep();
  expect(await s.ticks()).toEqual(hours(DAY, 1, 2, 3));
});

describe("a paused schedule", () => {
  test("enqueues nothing, and continues with the first tick after it is resumed", async () => {
    const s = await stage();
    await s.sluice.schedules.set("hourly", echoing({ missed: "all" }));
    await s.setClock(`${DAY}T01:00:01Z`);
    await s.sluice.schedules.pause("hourly");
    expect(await s.sluice.schedules.get("hourly")).toMatchObject({ paused: true, nextAt: null });
    await s.setClock(`${DAY}T04:30Z`);
    expect(await s.keep()).toBe(0);
    await s.sluice.schedules.resume("hourly");
    expect(await s.keep()).toBe(0);
    await s.setClock(`${DAY}T05:00Z`);
    expect(await s.keep()).toBe(1);
    expect(await s.ticks()).toEqual(hours(DAY, 5));
  });

  test("stays paused when a deploy sets it again, unchanged or changed", async () => {
    const s = await stage();
    await s.sluice.schedules.set("hourly", echoing());
    await s.sluice.schedules.pause("hourly");
    await s.sluice.schedules.pause("hourly");
    for (const cron of ["0 * * * *", "30 * * * *"]) {
      const status = await s.sluice.schedules.set("hourly", echoing({ cron }));
      expect(status).toMatchObject({ cron, paused: true, nextAt: null });
    }
    await s.sluice.schedules.resume("hourly");
    await s.sluice.schedules.resume("hourly");
    expect((await s.sluice.schedules.get("hourly")).nextAt).toEqual(new Date(`${DAY}T01:30Z`));
  });

  test("keeps its paused state separate from the enabled option", async () => {
    const s = await stage();
    await s.sluice.schedules.set("hourly", echoing({ enabled: false }));
    await s.sluice.schedules.resume("hourly");
    expect(await s.sluice.schedules.get("hourly")).toMatchObject({ enabled: false, nextAt: null });
    await s.sluice.schedules.pause("hourly");
    await s.sluice.schedules.set("hourly", echoing({ enabled: true }));
    expect((await s.sluice.schedules.get("hourly")).nextAt).toBeNull();
    await s.sluice.schedules.resume("hourly");
    expect((await s.sluice.schedules.get("hourly")).nextAt).toEqual(new Date(`${DAY}T01:00Z`));
  });

  test("can be triggered", async () => {
    const s = await stage();
    await s.sluice.schedules.set("hourly", echoing());
    await s.sluice.schedules.pause("hourly");
    const one = await s.sluice.schedules.trigger("hourly");
    const two = await s.sluice.schedules.trigger("hourly");
    expect(one.id).not.toBe(two.id);
    expect(await one.status()).toMatchObject({ type: "echo", state: "ready" });
    expect(await s.ticks()).toEqual([`${DAY}T00:30:00.000Z`, `${DAY}T00:30:00.000Z`]);
    expect(await s.sluice.schedules.get("hourly")).toMatchObject({
      lastAt: null,
      lastTaskId: null,
    });
  });
});

describe("the schedules API refuses, without a write,", () => {
  const strict = task("strict", {
    input: z.object({ n: z.number(), at: z.string().optional() }).loose(),
    order: (input) => input.at,
    limits: (input) => (input.n === 13 ? [limit("bad", { perKey: 1 }).for("")] : []),
  });
  const ok = { cron: "0 3 * * *", task: strict, input: { n: 1 } };
  const cases: [string, string, unknown, unknown][] = [
    ["a bad cron", "invalid_cron", "x", { ...ok, cron: "61 * * * *" }],
    ["a cron that never ticks", "invalid_cron", "x", { ...ok, cron: "0 0 31 2 *" }],
    ["an unknown time zone", "invalid_time_zone", "x", { ...ok, timeZone: "Europe/Atlantis" }],
    ["no timing", "invalid_option", "x", { task: strict, input: { n: 1 } }],
    ["two timings", "invalid_option", "x", { ...ok, everyMs: 60_000 }],
    [
      "a time zone for an interval",
      "invalid_option",
      "x",
      { task: strict, input: { n: 1 }, everyMs: 60_000, timeZone: "UTC" },
    ],
    ["an interval below a second", "invalid_option", "x", { task: strict, input: { n: 1 }, everyMs: 999 }],
    ["an interval that is not a number", "invalid_option", "x", { task: strict, input: { n: 1 }, everyMs: "60000" }],
    ["an empty name", "invalid_name", "", ok],
    ["a name with a control character", "invalid_name", "a\u0000b", ok],
    ["a name that is not text", "invalid_name", 7, ok],
    ["no task", "unknown_task", "x", { cron: "0 3 * * *" }],
    ["a misspelt option", "invalid_option", "x", { ...ok, timezone: "UTC" }],
    ["an unknown missed policy", "invalid_option", "x", { ...ok, missed: "twice" }],
    ["enabled as text", "invalid_option", "x", { ...ok, enabled: "no" }],
    ["a priority out of range", "invalid_option", "x", { ...ok, priority: 40_000 }],
    ["an input that the schema refuses", "input_invalid", "x", { ...ok, input: { n: "1" } }],
    ["an input that is not JSON", "input_not_serialisable", "x", { ...ok, input: { n: 1, f: 1n } }],
    ["an input that is too large", "input_too_large", "x", { ...ok, input: { n: 1, f: "x".repeat(2_000_000) } }],
    ["an empty limit key", "invalid_key", "x", { ...ok, input: { n: 13 } }],
    ["an order key that depends on the tick", "invalid_option", "x", { ...ok, input: { n: 1, at: tickTime } }],
    ["no options", "invalid_option", "x", undefined],
  ];
  test.each(cases)("%s", async (_, code, name, options) => {
    const s = await stage();
    expect(await codeOf(() => s.sluice.schedules.set(name as string, options as never))).toBe(code);
    expect(await s.sluice.schedules.list()).toEqual([]);
  });

  test.each(["get", "pause", "resume", "trigger"] as const)("%s of an unknown schedule", async (verb) => {
    const s = await stage();
    expect(await codeOf(() => s.sluice.schedules[verb]("none"))).toBe("unknown_schedule");
    expect(await codeOf(() => s.sluice.schedules[verb](""))).toBe("invalid_name");
  });
});

test("names and inputs of schedules are stored as data, whatever characters they contain", async () => {
  const s = await stage();
  const name = `x'); drop table sluice.schedule; -- "$1" {} \\ é`;
  const note = `'); delete from sluice.task; -- \u001e \\" ${tickTime}`;
  await s.sluice.schedules.set(name, echoing({ input: { at: tickTime, note } }));
  await s.setClock(`${DAY}T01:00Z`);
  expect(await s.keep()).toBe(1);
  const { rows } = await s.sql.query("select input from sluice.task");
  expect(rows).toEqual([{ input: { at: `${DAY}T01:00:00.000Z`, note } }]);
  expect((await s.sluice.schedules.list()).map((x) => x.name)).toEqual([name]);
});

test("a schedule of a task without input needs no input", async () => {
  const s = await stage();
  const bare = task("bare");
  await s.sluice.schedules.set("bare", { everyMs: 60_000, task: bare });
  const none = { everyMs: 60_000, task: echo };
  const wrong = { ...none, input: { at: 1 } };
  // @ts-expect-error an input that the task needs cannot be left out
  void (() => s.sluice.schedules.set("x", none));
  // @ts-expect-error nor can it be of another type
  void (() => s.sluice.schedules.set("x", wrong));
  const handle = await s.sluice.schedules.trigger("bare");
  expect(await handle.status()).toMatchObject({ type: "bare" });
});

test("schedules of a closed client refuse every call", async () => {
  const s = await stage();
  await s.sluice.close();
  expect(await codeOf(() => s.sluice.schedules.list())).toBe("closed");
});
