import pg from "pg";
import { expect, test } from "vitest";
import { limit, Sluice, task, tickTime, type } from "../../src/index.js";
import { freshDatabase } from "../support/database.js";
import { signal } from "../flow/scene.js";
import { echo, echoing, hours, stage, violations, type Stage } from "./stage.js";

const DAY = "2026-01-01";
const tenant = limit("tenant", { perKey: 1, total: 5 });
const shared = limit("shared", { total: 2 });
const work = task("work", {
  input: type<{ tenant: string; account: string; at: string }>(),
  queue: "slow",
  priority: 3,
  retry: { attempts: 4 },
  order: { key: (input) => input.account, scope: "accounts", onFailure: "block" },
  limits: [tenant.for((input: { tenant: string }) => input.tenant), shared],
});
const input = { tenant: "acme", account: "a-1", at: tickTime };

async function rowsOf({ sql }: Stage): Promise<unknown[]> {
  const { rows } = await sql.query(
    `select t.lane_keys, t.lane_limits, t.gate, t.rank, t.attempts_max, t.stream, t.lanes,
      t.input::jsonb - 'at' as input, s.state from sluice.task t join sluice.task_state s using (id) order by t.id`,
  );
  return rows;
}

test("a tick is subject to the same order and limits as a task that was enqueued directly", async () => {
  const s = await stage();
  await s.sluice.enqueue(work, { ...input, at: "" });
  // This keeper does not have the task definition: the schedule stores all that it needs.
  await s.sluice.schedules.set("work", { cron: "0 * * * *", task: work, input, missed: "all" });
  await s.setClock(`${DAY}T02:00Z`);
  expect(await s.keep()).toBe(2);
  const [byHand, ...byTick] = await rowsOf(s);
  expect(byTick).toEqual([byHand, byHand]);
  expect(byHand).toMatchObject({ rank: -3, attempts_max: 4, state: "waiting" });
  await violations(s);
});

test("the priority of a schedule overrides the priority of its task", async () => {
  const s = await stage();
  await s.sluice.schedules.set("work", { everyMs: 60_000, task: work, input, priority: -5 });
  await s.sluice.schedules.trigger("work");
  expect(await rowsOf(s)).toMatchObject([{ rank: 5 }]);
});

test("ticks of a type without a worker are enqueued and wait", async () => {
  const s = await stage();
  await s.sluice.schedules.set("work", { cron: "0 * * * *", task: work, input });
  for (const hour of [1, 2]) {
    await s.setClock(`${DAY}T0${hour}:00Z`);
    expect(await s.keep()).toBe(1);
  }
  expect(await s.sluice.counts()).toMatchObject({ waiting: 2, ready: 0 });
  await violations(s);
});

test("a removed limit no longer applies to ticks until it is declared again", async () => {
  const s = await stage();
  await s.sluice.schedules.set("work", { cron: "0 * * * *", task: work, input });
  await s.sluice.limits.remove("shared");
  await s.setClock(`${DAY}T01:00Z`);
  expect(await s.keep()).toBe(1);
  await s.sluice.limits.remove("tenant");
  await s.setClock(`${DAY}T02:00Z`);
  expect(await s.keep()).toBe(1);
  await s.sluice.sync([shared, tenant]);
  await s.setClock(`${DAY}T03:00Z`);
  expect(await s.keep()).toBe(1);
  const keys = ((await rowsOf(s)) as { lane_keys: string[] }[]).map((row) => row.lane_keys.length);
  expect(keys).toEqual([2, 1, 2]);
  await violations(s);
});

test("setting a schedule declares a removed limit again", async () => {
  const s = await stage();
  await s.sluice.schedules.set("one", { cron: "0 * * * *", task: work, input });
  await s.sluice.limits.remove("tenant");
  await s.sluice.schedules.set("two", { cron: "0 * * * *", task: work, input });
  expect((await s.sluice.limits.list()).map(({ name }) => name)).toEqual(["shared", "tenant"]);
});

test("a refused tick is kept with its reason and does not block other schedules", async () => {
  const s = await stage();
  const told: unknown[] = [];
  const warn = (_: string, fields?: object): void => void told.push(fields);
  const log = { debug: warn, info: warn, warn, error: warn };
  const total = task("total", {
    input: type<{ at: string }>(),
    limits: [limit("l", { total: 1 })],
  });
  await s.sluice.schedules.set("a", { cron: "0 * * * *", task: total, input: { at: tickTime } });
  await s.sluice.schedules.set("b", echoing());
  // The limit was redeclared under the same name and now needs a key, which the schedule does not have.
  await s.sluice.limits.remove("l");
  await s.sluice.sync([limit("l", { perKey: 1 })]);
  await s.setClock(`${DAY}T01:00Z`);
  expect(await s.keep(log)).toBe(1);
  expect(told).toMatchObject([{ schedule: "a", error: expect.stringContaining("key") }]);
  const status = await s.sluice.schedules.get("a");
  expect(status).toMatchObject({ nextAt: new Date(`${DAY}T01:00Z`), lastAt: null });
  expect(status.trouble).toContain("key");
  expect(await s.keep(log), "it is looked at again later").toBe(0);
  expect(told).toHaveLength(1);
  await s.sluice.limits.remove("l");
  await s.setClock(`${DAY}T01:00:30Z`);
  expect(await s.keep(log)).toBe(1);
  expect(await s.ticks()).toEqual([...hours(DAY, 1), ...hours(DAY, 1)]);
  expect((await s.sluice.schedules.get("a")).trouble).toBeNull();
});

test.each([
  ["the database cannot update", "alter table sluice.schedule add check (name <> 'a' or last_at is null)"],
  [
    "has a time zone that this process does not know",
    "update sluice.schedule set time_zone = 'Mars/Phobos' where name = 'a'",
  ],
])("a schedule that %s does not block other schedules", async (_, trouble) => {
  const s = await stage();
  const told: unknown[] = [];
  const warn = (_message: string, fields?: object): void => void told.push(fields);
  for (const name of ["a", "b"]) await s.sluice.schedules.set(name, echoing());
  await s.sql.query(trouble);
  await s.setClock(`${DAY}T01:00Z`);
  expect(await s.keep({ debug: warn, info: warn, warn, error: warn })).toBe(1);
  expect((await s.sluice.schedules.get("b")).lastAt).not.toBeNull();
  expect((await s.sluice.schedules.get("a")).nextAt).toEqual(new Date(`${DAY}T01:00Z`));
  expect(told).toContainEqual({ schedule: "a", error: expect.any(String) });
});

test("a refused schedule can be set again, including its timing", async () => {
  const s = await stage();
  const total = task("total", {
    input: type<{ at: string }>(),
    limits: [limit("l", { total: 1 })],
  });
  const spec = { task: total, input: { at: tickTime } };
  await s.sluice.schedules.set("a", { ...spec, cron: "0 * * * *" });
  await s.sluice.limits.remove("l");
  await s.sluice.sync([limit("l", { perKey: 1 })]);
  await s.setClock(`${DAY}T01:00Z`);
  await s.keep();
  const status = await s.sluice.schedules.set("a", echoing({ cron: "30 * * * *" }));
  expect(status).toMatchObject({ nextAt: new Date(`${DAY}T01:30Z`), trouble: null, type: "echo" });
});

test("an idempotency key of a user cannot collide with a tick", async () => {
  const s = await stage();
  const at = `${DAY}T01:00:00.000Z`;
  for (const idempotencyKey of [`hourly${at}`, at, `hourly ${at}`])
    await s.sluice.enqueue(echo, { at: "mine" }, { idempotencyKey });
  await s.sluice.schedules.set("hourly", echoing());
  await s.setClock(`${DAY}T01:00Z`);
  expect(await s.keep()).toBe(1);
  expect(await s.ticks()).toEqual(["mine", "mine", "mine", at]);
});

test("a worker enqueues ticks by itself and its handler gets their times", async () => {
  const database = await freshDatabase({ migrated: true });
  const sluice = await Sluice.connect({ url: database.url, migrate: false });
  const second = signal<string[]>();
  const seen: string[] = [];
  const handler = echo.handle(({ at }) => {
    seen.push(at);
    if (seen.length === 2) second.resolve(seen);
  });
  try {
    await sluice.worker({ handlers: [handler] }).start();
    await sluice.schedules.set("often", echoing({ everyMs: 1_000, missed: "all" }));
    const [one, two] = (await second.promise).map((at) => Date.parse(at));
    expect(two! - one!).toBe(1_000);
    expect(one! % 1_000).toBe(0);
  } finally {
    await sluice.close();
    await database.drop();
  }
});

test("due schedules among 100,000 are found by an index, even with a plan cached on an empty table", async () => {
  const s = await stage();
  await s.sluice.schedules.set("one", echoing());
  const veteran = new pg.Client(s.url);
  await veteran.connect();
  const looks = async (): Promise<{ scans: number; rows: number; due: number }> => {
    await veteran.query("begin");
    try {
      const before = await touched(veteran);
      const { rows } = await veteran.query<{ due: unknown[] | null }>("select due from sluice.due_schedules(500)");
      const after = await touched(veteran);
      const due = rows[0]!.due?.length ?? 0;
      return { scans: after.scans - before.scans, rows: after.rows - before.rows, due };
    } finally {
      await veteran.query("rollback");
    }
  };
  try {
    for (let i = 0; i < 10; i++) await looks();
    await s.sql.query(
      `insert into sluice.schedule (name, digest, stream, input, cron, time_zone, missed, priority, attempts, order_blocks, limit_names, limit_keys, enabled, next_at, due_at)
       select name || n, digest, stream, input, cron, time_zone, missed, priority, attempts, order_blocks, limit_names, limit_keys, enabled, next_at + n * interval '1 s', due_at + n * interval '1 s'
       from sluice.schedule, generate_series(1, 100000) n`,
    );
    await s.setClock(`${DAY}T01:00:02Z`);
    // The three due schedules, and the next one.
    expect(await looks()).toEqual({ scans: 0, rows: 4, due: 3 });
    await s.sql.query("vacuum analyze sluice.schedule");
    expect(await looks()).toMatchObject({ scans: 0, due: 3 });
  } finally {
    await veteran.end();
  }
});

async function touched(client: pg.Client): Promise<{ scans: number; rows: number }> {
  const { rows } = await client.query<{ scans: number; rows: number }>(
    `select seq_scan::int as scans, (seq_tup_read + idx_tup_fetch)::int as rows
     from pg_stat_xact_user_tables where schemaname = 'sluice' and relname = 'schedule'`,
  );
  return rows[0]!;
}
