import pg from "pg";
import { expect, test } from "vitest";
import { fixed, task, tickTime, type } from "../../src/index.js";
import { kit } from "./kit.js";

const HOUR = 3_600_000;
const newYear = new Date("2031-01-01T00:00:00Z");

test("the test clock stands still until advanced, and delayed tasks become due to the millisecond", async () => {
  const remind = task("remind", { input: type<string>() });
  const seen: string[] = [];
  const t = await kit({ handlers: [remind.handle((who) => void seen.push(who))], now: newYear });
  await t.sluice.enqueue(remind, "at", { runAt: new Date("2031-01-01T09:00:00Z") });
  await t.sluice.enqueue(remind, "after", { delayMs: 9 * HOUR + 1 });
  expect((await t.drain()).nextDueMs).toBe(9 * HOUR);
  await t.clock.advance(9 * HOUR - 1);
  expect(await t.drain()).toEqual({ ran: [], nextDueMs: 1, unserved: [] });
  await t.clock.advance(1);
  await t.drain();
  expect(seen).toEqual(["at"]);
  await t.clock.set(new Date("2031-01-02T00:00:00Z"));
  await t.drain();
  expect(seen).toEqual(["at", "after"]);
});

test("the test clock enqueues ticks of schedules as it advances", async () => {
  const report = task("report", { input: type<{ at: string }>() });
  const seen: string[] = [];
  const t = await kit({ handlers: [report.handle(({ at }) => void seen.push(at))], now: newYear });
  await t.sluice.schedules.set("daily", {
    task: report,
    input: { at: tickTime },
    cron: "0 6 * * *",
    missed: "all",
  });
  expect(await t.drain()).toEqual({ ran: [], nextDueMs: 6 * HOUR, unserved: [] });
  await t.clock.advance(6 * HOUR);
  expect((await t.drain()).nextDueMs).toBe(24 * HOUR);
  await t.clock.advance(48 * HOUR);
  await t.drain();
  expect(seen).toEqual([1, 2, 3].map((day) => `2031-01-0${day}T06:00:00.000Z`));
});

test("the test clock elapses retry backoffs", async () => {
  const flaky = task("flaky", { retry: { attempts: 3, backoff: (attempt) => attempt * HOUR } });
  const t = await kit({
    handlers: [
      flaky.handle(() => {
        throw new Error("not yet");
      }),
    ],
  });
  const { id } = await t.sluice.enqueue(flaky);
  const outcomes = [];
  for (let i = 0; i < 3; i++) {
    const { ran, nextDueMs } = await t.drain();
    outcomes.push([ran.map((r) => `${r.attempt} ${r.outcome}`).join(), nextDueMs]);
    await t.clock.advance(nextDueMs ?? 0);
  }
  expect(outcomes).toEqual([
    ["1 retry", HOUR],
    ["2 retry", 2 * HOUR],
    ["3 failed", null],
  ]);
  expect((await t.sluice.task(id).status())?.state).toBe("failed");
});

test("all times of a task come from the test clock", async () => {
  const work = task("work");
  const t = await kit({
    handlers: [work.handle(async () => t.clock.advance(1_000))],
    now: newYear,
  });
  const handle = await t.sluice.enqueue(work);
  await t.clock.advance(HOUR);
  await t.drain();
  expect(await handle.status()).toMatchObject({
    createdAt: newYear,
    startedAt: new Date(newYear.getTime() + HOUR),
    finishedAt: new Date(newYear.getTime() + HOUR + 1_000),
  });
  expect(t.clock.now()).toEqual(new Date(newYear.getTime() + HOUR + 1_000));
});

test("only the clock function of a test database reads the server time", async () => {
  const t = await kit();
  const client = new pg.Client(t.url);
  await client.connect();
  const { rows } = await client.query(
    `select p.proname as name from pg_proc p where p.pronamespace = 'sluice'::regnamespace and p.prosrc ~ '\\m(now|clock_timestamp|statement_timestamp|transaction_timestamp)\\(\\)'
     union all
     select d.adrelid::regclass::text from pg_attrdef d join pg_class c on c.oid = d.adrelid
     where c.relnamespace = 'sluice'::regnamespace and pg_get_expr(d.adbin, d.adrelid) ~ '\\m(now|CURRENT_TIMESTAMP)'
     order by 1`,
  );
  await client.end();
  // The time of a migration is only for people to read.
  expect(rows).toEqual([{ name: "clock" }, { name: "sluice.migration" }]);
});

test("history is pruned by the test clock, and newly ended tasks are kept", async () => {
  const work = task("work");
  const t = await kit({ handlers: [work.handle(() => {})], history: { succeededMs: HOUR } });
  const old = await t.sluice.enqueue(work);
  await t.drain();
  await t.clock.advance(HOUR - 1);
  await t.drain();
  expect((await old.status())?.state).toBe("succeeded");
  await t.clock.advance(10_000);
  const young = await t.sluice.enqueue(work);
  await t.drain();
  await t.clock.advance(10_000);
  await t.drain();
  expect([await old.status(), (await young.status())?.state]).toEqual([null, "succeeded"]);
});

test("an idempotency key expires after a day of the test clock", async () => {
  const work = task("work");
  const t = await kit();
  const enqueue = async (): Promise<boolean> =>
    (await t.sluice.enqueue(work, undefined, { idempotencyKey: "k" })).existed;
  expect([await enqueue(), await enqueue()]).toEqual([false, true]);
  await t.clock.advance(24 * HOUR);
  expect(await enqueue()).toBe(false);
});

test("a lease expires by the test clock, and tasks of a vanished worker run again", async () => {
  const work = task("work");
  const seen: number[] = [];
  const t = await kit({ handlers: [work.handle((_, ctx) => void seen.push(ctx.attempt))] });
  const { id } = await t.sluice.enqueue(work);
  // A process that claimed the task and vanished.
  const client = new pg.Client(t.url);
  await client.connect();
  await client.query(
    `select sluice.step(w, 7, array(select id from sluice.stream), 1)
     from sluice.register('gone', array(select id from sluice.stream), 15000, 1) w`,
  );
  await client.end();
  expect((await t.sluice.task(id).status())?.state).toBe("running");
  await t.clock.advance(14_999);
  expect((await t.drain()).ran).toEqual([]);
  await t.clock.advance(1);
  await t.drain();
  expect(seen).toEqual([1]);
});

test("a handler is timed out and abandoned by the test clock", async () => {
  const slow = task("slow", { timeoutMs: HOUR, retry: { attempts: 1 } });
  const reasons: unknown[] = [];
  const t = await kit({
    handlers: [
      slow.handle(async (_, ctx) => {
        ctx.signal.addEventListener("abort", () => reasons.push(ctx.signal.reason));
        await t.clock.advance(HOUR - 1);
        expect(ctx.signal.aborted).toBe(false);
        await t.clock.advance(1);
        expect(ctx.signal.aborted).toBe(true);
        await t.clock.advance(1_000);
        return new Promise(() => {});
      }),
    ],
  });
  await t.sluice.enqueue(slow);
  const { ran } = await t.drain();
  expect(ran).toMatchObject([{ outcome: "failed" }]);
  expect(reasons).toMatchObject([{ code: "timeout" }]);
});

test("a cancel reaches a running handler when the test clock advances past a heartbeat", async () => {
  const long = task("long");
  const t = await kit({
    handlers: [
      long.handle(async (_, ctx) => {
        expect(await t.sluice.task(ctx.id).cancel({ reason: "changed my mind" })).toBe("asked");
        await t.clock.advance(5_000);
        ctx.signal.throwIfAborted();
      }),
    ],
  });
  await t.sluice.enqueue(long);
  expect((await t.drain()).ran).toMatchObject([{ outcome: "cancelled", error: { code: "task_cancelled" } }]);
});

test("a handler that runs longer than a lease on the test clock still completes", async () => {
  const long = task("long", { timeoutMs: null });
  const t = await kit({ handlers: [long.handle(async () => t.clock.advance(40 * 24 * HOUR))] });
  await t.sluice.enqueue(long);
  expect((await t.drain()).ran).toMatchObject([{ outcome: "succeeded", attempt: 1 }]);
});

test("a real worker on a test database follows the test clock", async () => {
  const work = task("work", {
    retry: { attempts: 2, backoff: fixed(HOUR) },
    output: type<number>(),
  });
  const t = await kit({ listen: true });
  const worker = t.sluice.worker({
    handlers: [
      work.handle((_, { attempt }) => {
        if (attempt === 1) throw new Error("once more");
        return attempt;
      }),
    ],
    pollIntervalMs: 20,
  });
  await worker.start();
  const handle = await t.sluice.enqueue(work);
  await expect.poll(async () => (await handle.status())?.state).toBe("scheduled");
  await t.clock.advance(HOUR);
  expect(await handle.result({ timeoutMs: 10_000 })).toBe(2);
});

test("the test clock moves only forward and by whole milliseconds", async () => {
  const t = await kit();
  const wrong = [
    () => t.clock.advance(-1),
    () => t.clock.advance(0.5),
    () => t.clock.set(new Date(Number.NaN)),
    () => t.clock.set(new Date(t.clock.now().getTime() - 1)),
  ];
  for (const move of wrong) await expect(move()).rejects.toMatchObject({ code: "invalid_option" });
});
