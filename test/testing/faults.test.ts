import { expect, test } from "vitest";
import { limit, task, type, type TaskContext } from "../../src/index.js";
import { crash, cutReply, loseLease, stall, type DrainedExecution, type Fault } from "../../src/testing/index.js";
import { kit, violations } from "./kit.js";

const seats = limit("seats", { total: 1 });
const charge = task("charge", {
  input: type<string>(),
  output: type<number>(),
  order: (account) => account,
  limits: [seats],
});
const brief = ({ attempt, outcome, fault }: DrainedExecution): unknown[] => [attempt, outcome, fault];

/** Runs one charge under the faults. */
async function under(faults: readonly Fault[], handler: (ctx: TaskContext) => number | Promise<number>) {
  const t = await kit({ handlers: [charge.handle((_, ctx) => handler(ctx))] });
  const handle = await t.sluice.enqueue(charge, "ada");
  const { ran } = await t.drain({ faults });
  expect(await violations(t)).toEqual([]);
  return { t, handle, ran: ran.map(brief), runs: ran };
}

test("crash keeps the effects of the handler, loses its completion and runs the task again", async () => {
  let charged = 0;
  const { handle, ran } = await under([crash(charge)], () => ++charged);
  expect(charged).toBe(2);
  expect(ran).toEqual([
    [1, "crashed", "crash"],
    [1, "succeeded", null],
  ]);
  expect(await handle.result()).toBe(2);
});

test("crash drops enqueues of ctx and keeps a committed transaction", async () => {
  const mail = task("mail", { input: type<string>() });
  const runs = { enqueues: 0, transaction: 0 };
  const enqueues = task("enqueues");
  const commits = task("commits");
  const t = await kit({
    handlers: [
      enqueues.handle(async (_, ctx) => ctx.enqueue(mail, `run ${++runs.enqueues}`)),
      commits.handle(async (_, ctx) => ctx.transaction(async () => void runs.transaction++)),
    ],
  });
  await t.sluice.enqueue(enqueues);
  await t.sluice.enqueue(commits);
  const { ran } = await t.drain({ faults: [crash(enqueues), crash(commits)] });
  expect(ran.map(({ type, outcome }) => `${type} ${outcome}`)).toEqual([
    "enqueues crashed",
    "enqueues succeeded",
    "commits succeeded",
  ]);
  expect(runs).toEqual({ enqueues: 2, transaction: 1 });
  expect((await t.enqueued(mail)).map((m) => m.input)).toEqual(["run 2"]);
});

test("a drain distinguishes faults from completions even without history", async () => {
  const commits = task("commits");
  const plain = task("plain");
  const t = await kit({
    handlers: [commits.handle(async (_, ctx) => ctx.transaction(async () => {})), plain.handle(() => {})],
    history: { succeededMs: 0 },
  });
  await t.sluice.enqueue(commits);
  await t.sluice.enqueue(plain);
  const { ran } = await t.drain({ faults: [crash(commits), crash(plain), cutReply(plain)] });
  expect(ran.map(({ type, outcome }) => `${type} ${outcome}`)).toEqual([
    "commits succeeded",
    "plain crashed",
    "plain succeeded",
  ]);
  expect(await t.sluice.counts()).toMatchObject({ succeeded: 0, ready: 0, running: 0 });
});

test("crash lets a handler that throws die at that point without using an attempt", async () => {
  const steps: string[] = [];
  const { ran } = await under([crash(charge)], () => {
    steps.push("first");
    if (steps.length === 1) throw new Error("dies between its two effects");
    steps.push("second");
    return 1;
  });
  expect(steps).toEqual(["first", "first", "second"]);
  expect(ran).toEqual([
    [1, "crashed", "crash"],
    [1, "succeeded", null],
  ]);
});

test("crash makes a task suspect after three crashes, which may still complete, and poisoned after four", async () => {
  const three = await under([crash(charge, { times: 3 })], () => 7);
  expect(three.ran).toHaveLength(4);
  expect(await three.handle.result()).toBe(7);
  const four = await under([crash(charge, { times: 4 })], () => 7);
  expect(four.ran).toHaveLength(4);
  expect(await four.handle.status()).toMatchObject({
    state: "failed",
    outcome: { code: "poisoned" },
  });
});

test("stall gives the handler no signal, and the database refuses its completion", async () => {
  const aborted: boolean[] = [];
  const { handle, ran } = await under([stall(charge)], async ({ signal }) => {
    await new Promise((resolve) => setImmediate(resolve));
    return aborted.push(signal.aborted);
  });
  expect(aborted).toEqual([false, false]);
  expect(ran).toEqual([
    [1, "refused", "stall"],
    [1, "succeeded", null],
  ]);
  expect(await handle.result()).toBe(2);
});

test("stall rolls back a transaction of the handler", async () => {
  const tries: unknown[] = [];
  const { t, ran } = await under([stall(charge)], async (ctx) => {
    try {
      return await ctx.transaction(async (tx) => {
        await tx.query("create table if not exists ledger (run int)");
        await tx.query("insert into ledger values ($1)", [tries.length]);
        return 1;
      });
    } catch (e) {
      tries.push(e);
      throw e;
    }
  });
  expect(tries).toMatchObject([{ code: "lease_lost" }]);
  expect(ran.map(([, outcome]) => outcome)).toEqual(["refused", "succeeded"]);
  const { default: pg } = await import("pg");
  const client = new pg.Client(t.url);
  await client.connect();
  expect((await client.query("select run from ledger")).rows).toEqual([{ run: 1 }]);
  await client.end();
});

test("loseLease aborts the signal midway and records nothing of the execution", async () => {
  const seen: unknown[] = [];
  const { handle, ran } = await under([loseLease(charge)], async (ctx) => {
    seen.push(ctx.signal.aborted);
    await new Promise((resolve) => setImmediate(resolve));
    seen.push(ctx.signal.aborted);
    if (ctx.signal.aborted) {
      seen.push((ctx.signal.reason as { code: string }).code);
      try {
        await ctx.transaction(async () => 1);
      } catch (e) {
        seen.push((e as { code: string }).code);
      }
    }
    return 1;
  });
  expect(seen).toEqual([false, true, "lease_lost", "not_claimed", false, false]);
  expect(ran).toEqual([
    [1, "lease_lost", "lose-lease"],
    [1, "succeeded", null],
  ]);
  expect(await handle.result()).toBe(1);
});

test("cutReply of a completion counts it once and does not rerun the task", async () => {
  let charged = 0;
  const { handle, ran } = await under([cutReply(charge)], () => ++charged);
  expect(ran).toEqual([[1, "succeeded", "cut-completion"]]);
  expect(await handle.result()).toBe(1);
  const failing = await under([cutReply(charge)], () => {
    throw new Error("no money");
  });
  expect(failing.ran).toEqual([[1, "retry", "cut-completion"]]);
  expect((await failing.handle.status())?.state).toBe("scheduled");
});

test("cutReply of a commit rejects a transaction that has committed", async () => {
  const heard: unknown[] = [];
  const { handle, ran } = await under([cutReply(charge)], async (ctx) => {
    try {
      return await ctx.transaction(async () => 5);
    } catch (e) {
      heard.push(e);
      // A second attempt is refused because the task has already ended.
      await ctx.transaction(async () => 6).catch((e2: unknown) => heard.push(e2));
      throw e;
    }
  });
  expect(heard).toMatchObject([{ code: "database_unavailable" }, { code: "lease_lost" }]);
  expect(ran).toEqual([[1, "succeeded", "cut-completion"]]);
  expect(await handle.result()).toBe(5);
});

test("cutReply of a claim hands the task back before its handler runs", async () => {
  let charged = 0;
  const { handle, ran } = await under([cutReply(charge, "claim", { times: 5 })], () => ++charged);
  expect(ran).toEqual([...Array.from({ length: 5 }, () => [1, "released", "cut-claim"]), [1, "succeeded", null]]);
  // Handing back is not a crash: five times make no suspect and use no attempt.
  expect(await handle.status()).toMatchObject({ state: "succeeded", attempt: 1, outcome: 1 });
});

test("faults apply in list order, only to their own type and as often as specified", async () => {
  const other = task("other");
  const t = await kit({ handlers: [charge.handle(() => 1), other.handle(() => {})] });
  await t.sluice.enqueue(other);
  await t.sluice.enqueue(charge, "ada");
  const { ran } = await t.drain({
    faults: [stall(charge), crash(charge, { times: 2 }), cutReply(charge)],
  });
  expect(ran.map(({ type, fault }) => [type, fault])).toEqual([
    ["other", null],
    ["charge", "stall"],
    ["charge", "crash"],
    ["charge", "crash"],
    ["charge", "cut-completion"],
  ]);
});

test("a drain fails if a fault finds no task to apply to", async () => {
  const t = await kit({ handlers: [charge.handle(() => 1)] });
  await t.sluice.enqueue(charge, "ada");
  await expect(t.drain({ faults: [cutReply(charge, "completion", { times: 2 })] })).rejects.toMatchObject({
    code: "not_drained",
    details: { fault: "cut-completion", type: "charge", left: 1 },
  });
});

test("a drain refuses invalid faults", () => {
  const wrong = [
    () => crash("charge" as never),
    () => crash(charge, { times: 0 }),
    () => stall(charge, { time: 1 } as never),
    () => cutReply(charge, "commit" as never),
  ];
  for (const make of wrong) expect(make).toThrowError(expect.objectContaining({ code: expect.any(String) }));
});
