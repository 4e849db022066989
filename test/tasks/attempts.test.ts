import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { fixed, snooze, task, type } from "../../src/index.js";
import { openHouse, type House } from "../client/house.js";
import { Scene } from "../support/sql.js";

const flaky = task("flaky", { input: type<number>(), retry: { attempts: 15, backoff: fixed(1) } });
const NEVER_MS = 3_600_000;
let house: House;
beforeEach(async () => void (house = await openHouse()));
afterEach(() => house.close());

/** Fails as often as its input says. */
const failing = flaky.handle((times, ctx) => {
  if (ctx.attempt <= times) throw Object.assign(new Error(`wrong ${ctx.attempt}`), { code: "E_WRONG" });
  return "right";
});

describe("failed attempts", () => {
  test("a task keeps the error of each failed attempt after it succeeds", async () => {
    await house.work([failing], { name: "w1" });
    const handle = await house.sluice.enqueue(flaky, 2);
    expect(await handle.result({ timeoutMs: 20_000 })).toBe("right");
    const attempts = await handle.attempts();
    expect(attempts).toMatchObject([
      { attempt: 1, worker: "w1", error: { name: "Error", message: "wrong 1", code: "E_WRONG" } },
      { attempt: 2, worker: "w1", error: { message: "wrong 2" } },
    ]);
    expect(attempts[0]!.error!.stack).toContain("attempts.test");
    expect(attempts[0]!.durationMs).toBeGreaterThanOrEqual(0);
    expect(attempts[0]!.failedAt.getTime()).toBeLessThanOrEqual(attempts[1]!.failedAt.getTime());
    expect(await handle.status()).toMatchObject({ state: "succeeded", lastError: null });
  });

  test("a task that succeeds at once has no row", async () => {
    await house.work([failing]);
    const handle = await house.sluice.enqueue(flaky, 0);
    await handle.result({ timeoutMs: 20_000 });
    expect(await handle.attempts()).toEqual([]);
    expect(await house.sql("select from sluice.attempt")).toEqual([]);
  });

  test("a task keeps its 10 newest retried attempts and the final failure", async () => {
    await house.work([failing]);
    const handle = await house.sluice.enqueue(flaky, 99);
    await expect(handle.result({ timeoutMs: 30_000 })).rejects.toMatchObject({ code: "task_failed" });
    const numbers = (await handle.attempts()).map(({ attempt }) => attempt);
    expect(numbers).toEqual([5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15]);
  });

  test("status, explain and the message of explain tell the last error while a task is retried", async () => {
    const late = task("late", { retry: { attempts: 3, backoff: fixed(NEVER_MS) } });
    await house.work([
      late.handle(() => {
        throw new TypeError("no route");
      }),
    ]);
    const handle = await house.sluice.enqueue(late);
    await expect.poll(async () => (await handle.status())!.state, { timeout: 20_000 }).toBe("scheduled");
    expect(await handle.status()).toMatchObject({ lastError: { name: "TypeError", message: "no route" } });
    const explained = (await handle.explain())!;
    expect(explained.error).toBe("no route");
    expect(explained.message).toMatch(/, after 1 of 3 attempts; the last one failed: no route$/);
  });

  test("a snooze is no failed attempt", async () => {
    const sleepy = task("sleepy");
    await house.work([sleepy.handle(() => snooze(NEVER_MS))]);
    const handle = await house.sluice.enqueue(sleepy);
    await expect.poll(async () => (await handle.status())!.state, { timeout: 20_000 }).toBe("scheduled");
    expect(await handle.attempts()).toEqual([]);
  });

  test("a manual retry keeps the error of the failure before it", async () => {
    const once = task("once", { retry: { attempts: 1 } });
    let wrong = true;
    await house.work([
      once.handle(() => {
        if (wrong) throw new Error("first");
      }),
    ]);
    const handle = await house.sluice.enqueue(once);
    await expect(handle.result({ timeoutMs: 20_000 })).rejects.toMatchObject({ code: "task_failed" });
    wrong = false;
    await house.sluice.retry(handle.id);
    await handle.result({ timeoutMs: 20_000 });
    expect(await handle.attempts()).toMatchObject([{ attempt: 1, error: { message: "first" } }]);
  });
});

test("an attempt whose worker died is listed and does not count", async () => {
  const scene = await Scene.open();
  try {
    const [a] = await scene.sessions(1);
    const stream = await a.type("t");
    const worker = await a.register([stream]);
    const [id] = await a.enqueue(stream);
    await a.claim(worker, 1);
    await a.rows("delete from sluice.worker");
    await a.rows("select sluice.reap()");
    const listed = "select attempt, error ->> 'code' as code from sluice.task_attempts($1)";
    expect(await a.rows(listed, [id])).toEqual([{ attempt: 1, code: "worker_lost" }]);
    expect(await a.value("select attempt from sluice.task_state where id = $1", [id])).toBe(0);
  } finally {
    await scene.close();
  }
});

test("get returns the input without secrets, and the failed attempts", async () => {
  const pay = task("pay", { input: type<{ card: string; password: string; note: string }>() });
  const hiding = await openHouse({ redact: ["card"] });
  try {
    const handle = await hiding.sluice.enqueue(pay, { card: "4111", password: "x", note: "n" });
    expect(await handle.get()).toMatchObject({
      id: handle.id,
      state: "ready",
      input: { card: "[redacted]", password: "[redacted]", note: "n" },
      attempts: [],
    });
    expect(await hiding.sluice.task("999").get()).toBeNull();
  } finally {
    await hiding.close();
  }
});

describe("pruning", () => {
  test("attempts go with the history of their task", async () => {
    await house.work([failing]);
    const handle = await house.sluice.enqueue(flaky, 1);
    await handle.result({ timeoutMs: 20_000 });
    await house.sql("update sluice.sweep set turn_at = '-infinity'");
    await house.sql("select sluice.prune_done(0, 0, 0)");
    expect(await house.sql("select from sluice.task")).toEqual([]);
    expect(await house.sql("select from sluice.attempt")).toEqual([]);
  });

  test("attempts of tasks that left no history are found, and those of other tasks stay", async () => {
    const tasks = `insert into sluice.task (id, stream, rank, attempts_max, gate, input)
      select n, 1, 0, 1, 0, '1' from generate_series(1, 50) n`;
    await house.sql(tasks);
    await house.sql(
      `insert into sluice.attempt (id, attempt, failed_at) select n, 1, now() from generate_series(1, 100) n`,
    );
    for (let i = 0; i < 40; i++) await house.sql("select sluice.prune_leftovers(1000)");
    expect(await house.sql("select count(*)::int as n, max(id)::int as last from sluice.attempt")).toEqual([
      { n: 50, last: 50 },
    ]);
  });
});
