import { describe, expect, onTestFinished, test, vi } from "vitest";
import { Database } from "../../src/postgres/database.js";
import { dueSchedules } from "../../src/postgres/schedule.js";
import { fire, planOf } from "../../src/schedules/fire.js";
import { startMember, startFleet, type Member } from "../support/fleet.js";
import { until } from "../flow/scene.js";
import { echoing, hours, stage, violations, type Stage } from "./stage.js";

const DAY = "2026-01-01";
const PROGRAM = "test/schedules/programs/keeper.ts";
const START = Date.parse("2026-01-01T00:30Z");
const seconds = (from: number, to: number): string[] =>
  Array.from({ length: to - from + 1 }, (_, i) => new Date(START + (from + i) * 1_000).toISOString());

async function enqueued({ sql }: Stage): Promise<number> {
  const { rows } = await sql.query<{ n: number }>("select count(*)::int as n from sluice.task");
  return rows[0]!.n;
}

/** Advances the clock to this second and waits until the last tick is enqueued. */
async function pass(s: Stage, to: number): Promise<void> {
  await s.setClock(new Date(START + to * 1_000).toISOString());
  await until(`tick ${to}`, async () => (await enqueued(s)) >= to, 60_000);
}

test("three concurrent processes enqueue each of 200 ticks exactly once", async () => {
  const s = await stage();
  await s.sluice.schedules.set("often", echoing({ everyMs: 1_000, missed: "all" }));
  const fleet = await startFleet(PROGRAM, 3, () => ({ url: s.url, pauseMs: 1 }));
  for (let to = 0; to < 200;) {
    to += 1 + (to % 4);
    await pass(s, Math.min(to, 200));
  }
  const said = await Promise.all(fleet.map(totalOf));
  expect(await s.ticks()).toEqual(seconds(1, 200));
  expect(
    said.reduce((a, b) => a + b, 0),
    "and one of them says so",
  ).toBe(200);
  await violations(s);
}, 120_000);

/** Stops the process and returns the number of ticks that it reports. */
async function totalOf(member: Member): Promise<number> {
  expect(await member.end()).toBe(0);
  return Number((await member.process.line((line) => line.startsWith("ticks "))).slice(6));
}

test("processes killed at any moment lose no tick and enqueue none twice", async () => {
  const s = await stage();
  await s.sluice.schedules.set("often", echoing({ everyMs: 1_000, missed: "all" }));
  await startMember(PROGRAM, "stays", { url: s.url, pauseMs: 5 });
  for (let round = 0; round < 6; round++) {
    const victim = await startMember(PROGRAM, "dies", { url: s.url, pauseMs: 0 });
    let killed: Promise<void> | undefined;
    for (let i = 1; i <= 10; i++) {
      const passed = pass(s, round * 10 + i);
      // The victim is killed while the clock advances and it enqueues.
      if (i === 5) killed = victim.kill();
      await passed;
    }
    await killed;
  }
  expect(await s.ticks()).toEqual(seconds(1, 60));
}, 120_000);

describe("after a keeper is killed in the middle of a tick,", () => {
  /** A keeper in its own process that holds the row and is blocked. */
  async function stuck(s: Stage): Promise<{ victim: Member; backend: number; free: () => Promise<void> }> {
    await s.sluice.schedules.set("hourly", echoing());
    const victim = await startMember(PROGRAM, "dies", { url: s.url, pauseMs: 5 });
    const blocker = await s.sql.connect();
    await blocker.query("begin; lock table sluice.task in access exclusive mode");
    await s.setClock("2026-01-01T01:00Z");
    const backend = await until("the tick to be stuck", async () => {
      const { rows } = await s.sql.query<{ pid: number }>(
        `select pid from pg_stat_activity where wait_event_type = 'Lock' and query like '%fire_schedule%'
          and datname = current_database()`,
      );
      return rows[0]?.pid;
    });
    const free = async (): Promise<void> => {
      await blocker.query("rollback");
      blocker.release();
    };
    return { victim, backend, free };
  }

  test("another keeper skips the row while it is locked, and then finds the tick enqueued", async () => {
    const s = await stage();
    const { victim, backend, free } = await stuck(s);
    await victim.kill();
    expect(await s.keep(), "the server does not know yet that its client is gone").toBe(0);
    await free();
    await until("the dead keeper's statement to end", async () => {
      const { rows } = await s.sql.query("select from pg_stat_activity where pid = $1", [backend]);
      return rows.length === 0;
    });
    expect(await s.keep()).toBe(0);
    expect(await s.ticks()).toEqual(hours(DAY, 1));
  });

  test("another keeper enqueues the tick if the transaction was rolled back", async () => {
    const s = await stage();
    const { victim, backend, free } = await stuck(s);
    await victim.kill();
    await s.sql.query("select pg_terminate_backend($1)", [backend]);
    await until("the dead keeper's statement to end", async () => {
      const { rows } = await s.sql.query("select from pg_stat_activity where pid = $1", [backend]);
      return rows.length === 0;
    });
    await free();
    expect(await s.keep()).toBe(1);
    expect(await s.keep()).toBe(0);
    expect(await s.ticks()).toEqual(hours(DAY, 1));
  });
});

describe("a keeper delayed after reading a due schedule enqueues nothing if meanwhile", () => {
  const changes: [string, (s: Stage) => Promise<unknown>, string[]][] = [
    ["another keeper enqueued the tick", (s) => s.keep(), hours(DAY, 1)],
    ["the schedule was paused", ({ sluice }) => sluice.schedules.pause("hourly"), []],
    ["the schedule was changed", ({ sluice }) => sluice.schedules.set("hourly", echoing({ priority: 1 })), []],
    ["the schedule was removed", ({ sluice }) => sluice.schedules.remove("hourly"), []],
    [
      "the schedule was removed and set again, and is due again",
      async (s) => {
        await s.sluice.schedules.remove("hourly");
        await s.sluice.schedules.set("hourly", echoing());
        await s.setClock(`${DAY}T02:00Z`);
      },
      [],
    ],
    ["the clock was set back", (s) => s.setClock(`${DAY}T00:59Z`), []],
  ];
  test.each(changes)("%s", async (_, change, expected) => {
    const s = await stage();
    const db = new Database({ url: s.url });
    onTestFinished(() => db.close());
    await s.sluice.schedules.set("hourly", echoing());
    await s.setClock(`${DAY}T01:00Z`);
    const { due, nowMs } = await dueSchedules(db, 10);
    await change(s);
    const answer = await fire(db, due[0]!, planOf(due[0]!, nowMs));
    expect(answer).toMatchObject({ answer: "taken" });
    expect(await s.ticks()).toEqual(expected);
  });
});

test("pause waits for a tick in progress, and no tick follows it", async () => {
  const s = await stage();
  await s.sluice.schedules.set("often", echoing({ everyMs: 1_000, missed: "all" }));
  await startFleet(PROGRAM, 2, () => ({ url: s.url, pauseMs: 1 }));
  for (let round = 1; round <= 10; round++) {
    const at = new Date(START + round * 10_000).toISOString();
    await Promise.all([s.setClock(at), s.sluice.schedules.pause("often")]);
    const before = await enqueued(s);
    await s.setClock(new Date(START + round * 10_000 + 5_000).toISOString());
    expect(await s.keep()).toBe(0);
    expect(await enqueued(s)).toBe(before);
    await s.sluice.schedules.resume("often");
  }
  const ticks = await s.ticks();
  expect(ticks).toEqual([...new Set(ticks)]);
}, 120_000);

test.each([-3_600_000, 3_600_000, 20 * 365 * 24 * 3_600_000])(
  "a process whose clock is %i ms off enqueues ticks by the database clock",
  async (offMs) => {
    const s = await stage();
    vi.useFakeTimers({ toFake: ["Date"], now: START + offMs });
    try {
      const status = await s.sluice.schedules.set("hourly", echoing());
      expect(status.nextAt).toEqual(new Date("2026-01-01T01:00Z"));
      expect(await s.keep()).toBe(0);
      await s.setClock("2026-01-01T01:00:30Z");
      expect(await s.keep()).toBe(1);
      expect(await s.ticks()).toEqual(hours(DAY, 1));
      await s.sluice.schedules.pause("hourly");
      await s.sluice.schedules.resume("hourly");
      expect((await s.sluice.schedules.get("hourly")).nextAt).toEqual(new Date("2026-01-01T02:00Z"));
    } finally {
      vi.useRealTimers();
    }
  },
);
