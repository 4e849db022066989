import { expect, onTestFinished, test } from "vitest";
import { Sluice, task, type } from "../../src/index.js";
import { silentLogger, type Logger } from "../../src/core/ports.js";
import { SluiceError } from "../../src/core/error.js";
import type { Completion } from "../../src/worker/outbox.js";
import { Portion } from "../../src/worker/portion.js";
import { mendedSuccess, refusalOf } from "../../src/worker/refused.js";
import { violations } from "../support/audit.js";
import { freshDatabase } from "../support/database.js";
import { ended, scene, until, type Scene } from "../flow/scene.js";

const once = { attempts: 1 };
const DAMNED = "the database does not want this";

/** A database that refuses an outcome for what is in it, as one in another encoding does. */
async function withCensor(errcode = "22P05"): Promise<Scene> {
  const s = await scene({ logger: silentLogger });
  await s.sql.query(`
    create function censor() returns trigger language plpgsql as $$
    begin
      if new.outcome::text like '%${DAMNED}%' then
        raise exception 'character has no equivalent' using errcode = '${errcode}';
      end if;
      return new;
    end $$;
    create trigger censor before insert on sluice.done for each row execute function censor()`);
  return s;
}

const numbers = (n: number): number[] => Array.from({ length: n }, (_, i) => i);

test("a result that the database refuses is recorded as a note, and the others of its batch unchanged", async () => {
  const s = await withCensor();
  let runs = 0;
  const job = task("job", { input: type<number>(), retry: once });
  const ids = (await s.sluice.enqueueMany(job, numbers(200))).ids();
  const worker = await s.worker({
    handlers: [
      job.handle((n) => {
        runs++;
        return n === 77 || n === 78 ? { text: DAMNED } : n;
      }),
    ],
  });
  await ended(s, 200);
  for (const n of [0, 76, 79, 199])
    expect(await s.sluice.task(ids[n]!).status()).toMatchObject({ state: "succeeded", outcome: n });
  for (const n of [77, 78])
    expect(await s.sluice.task(ids[n]!).status()).toMatchObject({
      state: "succeeded",
      outcome: {
        truncated: true,
        bytes: JSON.stringify({ text: DAMNED }).length,
        preview: "",
        refused: "character has no equivalent",
      },
    });
  // Claims go on, and every task ran once.
  expect(await (await s.sluice.enqueue(job, 1_000)).result({ timeoutMs: 20_000 })).toBe(1_000);
  expect(runs).toBe(201);
  await until("the permits to come back", () => worker.status().permitsInUse === 0);
  expect(worker.status().refused).toBe(0);
  expect(await violations(s.sql)).toEqual([]);
});

test("a result that the database refuses for a transient reason is recorded unchanged", async () => {
  // As of an old worker beside a newer schema.
  const s = await withCensor("42703");
  const job = task("job", { input: type<number>(), retry: once });
  const ids = (await s.sluice.enqueueMany(job, numbers(20))).ids();
  const worker = await s.worker({
    handlers: [job.handle((n) => (n === 7 ? { text: DAMNED } : n))],
  });
  await ended(s, 19);
  await new Promise((resolve) => setTimeout(resolve, 500));
  expect(await s.sluice.task(ids[7]!).status()).toMatchObject({ state: "running" });
  await s.sql.query("drop trigger censor on sluice.done");
  await ended(s, 20);
  expect(await s.sluice.task(ids[7]!).status()).toMatchObject({
    state: "succeeded",
    outcome: { text: DAMNED },
  });
  await until("the permits to come back", () => worker.status().permitsInUse === 0);
  expect(await violations(s.sql)).toEqual([]);
});

test("only errors of classes 22 and 54 are attributed to the data of an outcome", () => {
  const refusals = ["22P05", "54000", "42703", "42804", "58030", "XX000", "0A000", "23505", "25P04", "57P01"];
  expect(refusals.map((code) => refusalOf({ code }))).toEqual([
    "data",
    "data",
    "unknown",
    "unknown",
    "unknown",
    "unknown",
    "unknown",
    "unknown",
    "timeout",
    null,
  ]);
});

test("a task whose row another transaction locks delays the claims of its worker by one lock timeout only", async () => {
  const warned: string[] = [];
  const s = await scene({ logger: { ...silentLogger, warn: (words) => void warned.push(words) } });
  const held = task("held", { retry: once });
  const job = task("job", { input: type<number>(), retry: once });
  let begun = false;
  let letGo!: () => void;
  const gate = new Promise<void>((resolve) => (letGo = resolve));
  const worker = await s.worker({
    handlers: [
      job.handle((n) => n),
      held.handle(() => {
        begun = true;
        return gate;
      }),
    ],
  });
  const { id } = await s.sluice.enqueue(held);
  await until("its handler to run", () => begun);
  const other = await s.sql.connect();
  await other.query("begin");
  await other.query("select from sluice.running where id = $1 for update", [id]);
  letGo();
  let slowestMs = 0;
  for (let n = 0; n < 8; n++) {
    const sentMs = performance.now();
    expect(await (await s.sluice.enqueue(job, n)).result({ timeoutMs: 20_000 })).toBe(n);
    slowestMs = Math.max(slowestMs, performance.now() - sentMs);
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  expect(slowestMs).toBeLessThan(3_500);
  await other.query("rollback");
  other.release();
  await s.sluice.task(id).result({ timeoutMs: 10_000 });
  await until("the permits to come back", () => worker.status().permitsInUse === 0);
  expect(warned.filter((words) => words.includes("note"))).toEqual([]);
  expect(warned).toContain("another transaction holds the row of a task; its outcome is sent again");
});

test("an error that the database refuses is replaced, and the other failures of its batch are recorded unchanged", async () => {
  const s = await withCensor();
  const job = task("job", { input: type<number>(), retry: once });
  const ids = (await s.sluice.enqueueMany(job, numbers(40))).ids();
  const worker = await s.worker({
    handlers: [
      job.handle((n) => {
        throw new Error(n === 7 ? DAMNED : `number ${n}`);
      }),
    ],
  });
  await ended(s, 40);
  const statusOf = (n: number) => s.sluice.task(ids[n]!).status();
  expect(await statusOf(6)).toMatchObject({ state: "failed", outcome: { message: "number 6" } });
  expect(await statusOf(7)).toMatchObject({
    state: "failed",
    outcome: {
      name: "Error",
      message: "the database refused to store this error: character has no equivalent",
    },
  });
  await until("the permits to come back", () => worker.status().permitsInUse === 0);
  expect(await violations(s.sql)).toEqual([]);
});

test(
  "a statement_timeout too short for a batch is logged as a warning, and batches get smaller",
  { timeout: 120_000 },
  async () => {
    const s = await scene();
    // More than 60 outcomes in one statement take until it is stopped, fewer no time. All else has seconds.
    await s.sql.query(`
    create function slow() returns trigger language plpgsql as $$
    begin
      if (select count(*) from told) > 60 then perform pg_sleep(600); end if;
      return null;
    end $$;
    create trigger slow after insert on sluice.done referencing new table as told
      for each statement execute function slow()`);
    const url = new URL(s.url);
    url.searchParams.set("options", "-c statement_timeout=3000");
    const warned: string[] = [];
    const logger: Logger = { ...silentLogger, warn: (message) => void warned.push(message) };
    const hasty = await Sluice.connect({ url: url.href, migrate: false, logger });
    onTestFinished(() => hasty.close());
    const job = task("job", { input: type<number>(), retry: once });
    await s.sluice.enqueueMany(job, numbers(100));
    let runs = 0;
    // All of them end in one turn of the loop.
    const worker = hasty.worker({ claimBatchSize: 100, handlers: [job.handle(() => void runs++)] });
    await worker.start();
    onTestFinished(() => worker.stop({ graceMs: 0 }));
    // Beside others, as that the server has few connections left.
    expect(warned).toContainEqual(expect.stringMatching(/^the statement_timeout of this role or database is short/));
    await ended(s, 100, 60_000);
    expect(runs).toBe(100);
    expect(await violations(s.sql)).toEqual([]);
  },
);

test("a small result is kept after a timeout, and a large one becomes a note", () => {
  const timeout = new SluiceError("database_busy", "stopped", { cause: { code: "57014" } });
  const of = (result: string): Completion => ({ result }) as Completion;
  expect(mendedSuccess(of(JSON.stringify({ small: true })), timeout)).toBeNull();
  const large = mendedSuccess(of(JSON.stringify("x".repeat(100_000))), timeout);
  expect(JSON.parse(large!.result)).toMatchObject({ truncated: true, refused: "stopped" });
});

test("a portion that was too large is halved, and doubles again after a while", () => {
  let now = 0;
  const portion = new Portion(500, { now: () => now });
  expect(portion.size).toBe(500);
  portion.tooMuch(40);
  expect(portion.size).toBe(20);
  portion.tooMuch(500);
  expect(portion.size).toBe(10);
  portion.tooMuch(1);
  expect(portion.size).toBe(1);
  now += 29_999;
  expect(portion.size).toBe(1);
  now += 1;
  expect(portion.size).toBe(2);
  for (let i = 0; i < 10; i++) {
    now += 30_000;
    void portion.size;
  }
  expect(portion.size).toBe(500);
});

test("connect() refuses a database with an encoding other than UTF8", async () => {
  const latin = await freshDatabase({ encoding: "LATIN1" });
  onTestFinished(() => latin.drop());
  await expect(Sluice.connect({ url: latin.url })).rejects.toMatchObject({
    code: "encoding_unsupported",
    details: { encoding: "LATIN1" },
  });
});
