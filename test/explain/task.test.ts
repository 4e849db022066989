import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { silentLogger } from "../../src/core/ports.js";
import {
  fixed,
  limit,
  task,
  type,
  workflow,
  type Explanation,
  type TaskContract,
  type TaskHandle,
  type Worker,
  type WorkerOptions,
} from "../../src/index.js";
import { until } from "../flow/scene.js";
import { crowd } from "../support/crowd.js";
import { codeOf, openHouse, type House } from "../client/house.js";

let house: House;
let workers: Worker[] = [];
beforeAll(async () => {
  house = await openHouse({ logger: silentLogger });
});
async function stopWorkers(): Promise<void> {
  await Promise.all(workers.map((worker) => worker.stop({ graceMs: 0 })));
  workers = [];
}
afterEach(async () => {
  await house.sql("delete from sluice.worker where id = 7");
  await stopWorkers();
});
afterAll(() => house.close());

interface Keyed {
  readonly key: string;
}
const input = type<Keyed>();
const a: Keyed = { key: "a" };
const NOBODY = { kind: "noWorker", leaving: 0, elsewhere: [] };

/** A worker whose handlers run until they are aborted. */
async function hold(contract: TaskContract<Keyed, Keyed>, more: Partial<WorkerOptions> = {}) {
  const handler = contract.handle(
    (_input, { signal }) =>
      new Promise<void>((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
  );
  const worker = await house.work([handler], { name: "w1", ...more });
  workers.push(worker);
  return worker;
}

/** The row of a worker that serves everything, claims nothing and is never silent, with a column changed. */
async function idleWorker(column = "name", value = "'idle'"): Promise<void> {
  await house.sql(
    `insert into sluice.worker (id, name, streams, lease_ms, expires_at, connections, capacity_max, capacity_available)
     select 7, 'idle', array_agg(id), 60000, sluice.clock() + interval '61 minutes', 1, 5, 5 from sluice.stream`,
  );
  await house.sql(`update sluice.worker set ${column} = ${value} where id = 7`);
}

async function enqueue(contract: TaskContract<Keyed, Keyed>, ...keys: string[]) {
  const handles: TaskHandle[] = [];
  for (const key of keys) handles.push(await house.sluice.enqueue(contract, { key }));
  return handles;
}

async function reasons(handle: TaskHandle | undefined): Promise<unknown[]> {
  const explained = await handle!.explain();
  return explained!.reasons.map(({ message: _message, ...reason }) => reason);
}

async function running(handle: TaskHandle | undefined): Promise<Explanation> {
  return until(`task ${handle!.id} to run`, async () => {
    const explained = await handle!.explain();
    return explained!.state === "running" && explained;
  });
}

/** As a holder of a slot, while it runs on the worker of this test. */
const runs = (handle: TaskHandle | undefined, of: string) => ({
  task: handle!.id,
  type: of,
  queue: "default",
  state: "running",
  since: expect.any(Date) as Date,
  worker: "w1",
  reason: null,
});

describe("why a task does not run:", () => {
  test("explain reports a running, a cancelled and a finished task", async () => {
    const t = task("over", { input });
    await hold(t, { leaseMs: 6_000 });
    const [handle] = await enqueue(t, "a");
    const explained = await running(handle);
    const seconds = Math.round((explained.at.getTime() - explained.execution!.since.getTime()) / 1_000);
    expect(explained).toEqual({
      task: handle!.id,
      type: "over",
      queue: "default",
      state: "running",
      reasons: [],
      attempt: 1,
      attemptsMax: 5,
      createdAt: expect.any(Date) as Date,
      finishedAt: null,
      error: null,
      blocks: null,
      workflow: null,
      at: expect.any(Date) as Date,
      message: `it has been running since ${explained.execution!.since.toISOString()} (${seconds} s ago) on worker "w1"`,
      execution: {
        worker: "w1",
        since: expect.any(Date) as Date,
        heardAt: expect.any(Date) as Date,
        leaseUntil: expect.any(Date) as Date,
        silent: false,
        lost: false,
        stopping: false,
      },
    });
    await handle!.cancel();
    await until("its end", async () => (await handle!.explain())!.state === "cancelled");
    expect(await handle!.explain()).toMatchObject({
      message: expect.stringMatching(/^it was cancelled at .* ago\)$/) as string,
      reasons: [],
      execution: null,
    });
  });

  test("explain reports a task that recovers after the loss of its worker", async () => {
    const t = task("lost", { input });
    await hold(t);
    const [handle] = await enqueue(t, "a");
    await running(handle);
    // A locked task is not recovered: the worker's own keeper checks twice a second.
    const tx = await house.begin();
    try {
      await tx.query("select from sluice.running where id = $1 for update", [handle!.id]);
      await house.sql("update sluice.worker set expires_at = sluice.clock() - interval '1 second'");
      expect((await handle!.explain())!.execution).toMatchObject({ lost: true });
      await house.sql("delete from sluice.worker");
      const explained = (await handle!.explain())!;
      expect(explained.execution).toMatchObject({ worker: null, leaseUntil: null, lost: true });
      expect(explained.message).toContain("on a worker that is gone");
    } finally {
      await tx.query("rollback");
      tx.release();
    }
  });

  test("explain reports a scheduled task and one that waits for its retry", async () => {
    const t = task("later", { input, retry: { attempts: 3, backoff: fixed(600_000) } });
    const runAt = new Date(Date.now() + 5_000_000);
    const later = await house.sluice.enqueue(t, a, { runAt });
    expect(await reasons(later)).toEqual([{ kind: "scheduled", until: runAt }, NOBODY]);
    expect((await later.explain())!.message).toBe(`it is scheduled for ${runAt.toISOString()} (in 1 h)`);

    workers.push(await house.work([t.handle(() => Promise.reject(new Error("no")))]));
    const [retried] = await enqueue(t, "a");
    await until("its failure", async () => (await retried!.explain())!.state === "scheduled");
    expect(await reasons(retried)).toEqual([{ kind: "scheduled", until: expect.any(Date) as Date }]);
    expect((await retried!.explain())!.message).toMatch(/, after 1 of 3 attempts; the last one failed: no$/);
  });

  test("explain names the tasks ahead in the order key", async () => {
    const t = task("ordered", { input, order: ({ key }) => key });
    await hold(t);
    const [first, second, third, other] = await enqueue(t, "a", "a", "a", "b");
    await running(first);
    await running(other);
    const held = { kind: "order", key: "a", scope: null, holder: runs(first, "ordered") };
    expect(await reasons(second)).toEqual([{ ...held, before: 0 }]);
    expect(await reasons(third)).toEqual([{ ...held, before: 1 }]);
    expect((await third!.explain())!.message).toMatch(
      new RegExp(
        `^order key "a" is held by task ${first!.id} \\(ordered, running since .* ago\\) on w1\\); 1 task is ahead of it$`,
      ),
    );
  });

  test("explain names the failed task that blocks the order key", async () => {
    const t = task("blocked", {
      input,
      order: { key: ({ key }) => key, scope: "s", onFailure: "block" },
      retry: { attempts: 1 },
    });
    workers.push(await house.work([t.handle(() => Promise.reject(new Error("no")))]));
    const [first, second] = await enqueue(t, "a", "a");
    await until("the failure", async () => (await first!.explain())!.state === "failed");
    expect(await first!.explain()).toMatchObject({
      error: "no",
      blocks: { key: "a", scope: "s", behind: 1 },
      message: expect.stringMatching(
        /^it failed at .*, after 1 of 1 attempt: no; it blocks order key "a" of scope "s", with 1 task behind it$/,
      ) as string,
    });
    const explained = (await second!.explain())!;
    expect(explained.reasons).toMatchObject([
      {
        kind: "blocked",
        key: "a",
        scope: "s",
        before: 0,
        holder: { task: first!.id, state: "failed", worker: null },
      },
    ]);
    expect(explained.message).toContain(
      `order key "a" of scope "s" is blocked by task ${first!.id} (blocked), which failed at `,
    );
    expect(await house.sluice.unblock(first!.id)).toBe(true);
    // The next task of the unblocked key fails too.
    await until("the next", async () => (await second!.explain())!.state === "failed");
  });

  test("explain says why the task ahead in the order key does not run either", async () => {
    const slow = limit("slow", { total: 0 });
    const t = task("behind", { input, order: ({ key }) => `behind-${key}`, limits: [slow] });
    const [first, second] = await enqueue(t, "a", "a");
    await hold(t);
    await until("the first to stand at the limit", async () => {
      const [reason] = (await first!.explain())!.reasons;
      return reason?.kind === "limit" && reason.before === 0;
    });
    const zero = { kind: "limit", limit: "slow", key: null, slots: 0, used: 0, holders: [] };
    expect(await reasons(first)).toEqual([{ ...zero, before: 0 }]);
    expect((await first!.explain())!.message).toBe('limit "slow" is set to 0');
    expect(await reasons(second)).toEqual([
      {
        kind: "order",
        key: "behind-a",
        scope: null,
        before: 0,
        holder: {
          task: first!.id,
          type: "behind",
          queue: "default",
          state: "waiting",
          since: null,
          worker: null,
          // And why that one does not run.
          reason: { ...zero, before: 0, message: 'limit "slow" is set to 0' },
        },
      },
      // What comes after its order key, where it does not stand yet.
      { ...zero, before: null },
    ]);
  });

  test("explain names the holders of a full limit per key", async () => {
    const tenant = limit("tenant", { perKey: 2 });
    const t = task("keyed", { input, limits: [tenant.for(({ key }: Keyed) => key)] });
    await hold(t);
    const [one, two, three, four, other] = await enqueue(t, "a", "a", "a", "a", "b");
    for (const each of [one, two, other]) await running(each);
    const full = { kind: "limit", limit: "tenant", key: "a", slots: 2, used: 2 };
    const holders = [runs(one, "keyed"), runs(two, "keyed")];
    expect(await reasons(three)).toEqual([{ ...full, before: 0, holders }]);
    expect(await reasons(four)).toEqual([{ ...full, before: 1, holders }]);
    expect((await four!.explain())!.message).toMatch(
      /^limit "tenant" for key "a" is full: 2 of 2 in use, held by task .* and 1 more; 1 task is ahead of it$/,
    );
  });

  test("explain names the holders of full totals, its own and shared ones", async () => {
    const [vendor, api] = [limit("vendor", { total: 2 }), limit("api", { total: 2 })];
    const t = task("totals", { input, concurrency: 2, limits: [vendor, api] });
    const u = task("shares", { input, limits: [api] });
    await hold(t);
    const [one, two, three] = await enqueue(t, "a", "a", "a");
    await running(one);
    await running(two);
    const [late] = await enqueue(u, "a");
    const full = { kind: "limit", key: null, slots: 2, used: 2, before: 0 };
    const holders = [runs(one, "totals"), runs(two, "totals")];
    const found = await reasons(three);
    expect(found).toHaveLength(3);
    for (const name of ["vendor", "api", "totals"]) expect(found).toContainEqual({ ...full, limit: name, holders });
    expect(await reasons(late)).toEqual([{ ...full, limit: "api", before: 1, holders }, NOBODY]);
  });

  test("explain counts the backlog of a type's own limit together with tasks that have further totals", async () => {
    const t = task("both", { input, concurrency: 0, limits: [limit("both-total", { total: 0 })] });
    const [, , third] = await enqueue(t, "a", "a", "a");
    expect(await reasons(third)).toMatchObject([{ kind: "limit", before: 2 }, { kind: "limit", before: 2 }, NOBODY]);
  });

  test("explain says that no worker can move a due task or a parent of finished items", async () => {
    const t = task("due", { input });
    const handle = await house.sluice.enqueue(t, a, { runAt: new Date(Date.now() + 3_600_000) });
    await house.sql("update sluice.scheduled set run_at = sluice.clock() where id = $1", [handle.id]);
    expect(await reasons(handle)).toEqual([NOBODY]);
    await house.sql(
      `with gone as (delete from sluice.scheduled where id = $1 returning id, attempt)
       insert into sluice.parent (id, attempt, held, runs) select id, attempt, 0, '{999999}' from gone`,
      [handle.id],
    );
    expect(await reasons(handle)).toEqual([NOBODY]);
    await house.sql("delete from sluice.parent where id = $1", [handle.id]);
    await house.sql("delete from sluice.task where id = $1", [handle.id]);
  });

  test("explain reports the missing worker of a parked task before its limits", async () => {
    const keys = limit("parked", { perKey: 0 });
    const t = task("parked", { input, limits: [keys.for(({ key }: Keyed) => key)] });
    await enqueue(t, "b");
    // Tasks enqueued after their type is known to be unserved do not join a lane.
    await house.sql("select sluice.keep_lanes(1000)");
    const [handle] = await enqueue(t, "a");
    expect(await house.sql("select from sluice.parked where id = $1", [handle!.id])).toHaveLength(1);
    expect(await reasons(handle)).toMatchObject([NOBODY, { kind: "limit", before: null }]);
    await idleWorker();
    expect(await reasons(handle)).toMatchObject([{ kind: "limit", before: null }]);
  });

  test("explain counts only tasks of the same or higher priority ahead at a total", async () => {
    const t = task("better", { input, concurrency: 0 });
    const [low] = await enqueue(t, "a");
    const high = await house.sluice.enqueue(t, a, { priority: 5 });
    expect(await reasons(low)).toMatchObject([{ kind: "limit", before: 1 }, NOBODY]);
    expect(await reasons(high)).toMatchObject([{ kind: "limit", before: 0 }, NOBODY]);
  });

  test("explain reports a full limit for a slot held above a lowered number", async () => {
    const group = limit("lowered", { perKey: 3 });
    const t = task("shed", { input, limits: [group.for(({ key }: Keyed) => key)] });
    const worker = await hold(t, { maxConcurrentTasks: 2 });
    const [one, two, three] = await enqueue(t, "a", "a", "a");
    await running(one);
    await running(two);
    await until("the third to have its slot", async () => {
      const [reason] = (await three!.explain())!.reasons;
      return reason!.kind === "busy" || reason!.kind === "next";
    });
    await house.sluice.limits.set("lowered", { perKey: 2 });
    expect((await reasons(three))[0]).toMatchObject({ kind: "limit", slots: 2, key: "a" });
    expect(worker.status().inFlight).toBe(2);
  });

  test("explain reports a task that no worker serves", async () => {
    const t = task("nobody", { input, queue: "empty" });
    const [handle] = await enqueue(t, "a");
    expect(await reasons(handle)).toEqual([NOBODY]);
    expect((await handle!.explain())!.message).toBe('no live worker serves "nobody" in queue "empty"');
    await house.sluice.enqueue(task("nobody", { input, queue: "there" }), a);
    await idleWorker("streams", "(select array_agg(id) from sluice.stream where queue = 'there')");
    expect(await reasons(handle)).toEqual([{ ...NOBODY, elsewhere: ["there"] }]);
    expect((await handle!.explain())!.message).toMatch(/; it is served in queue "there"$/);
    await house.sql("delete from sluice.worker where id = 7");
    await idleWorker("draining", "true");
    expect(await reasons(handle)).toEqual([{ ...NOBODY, leaving: 1 }]);
    expect((await handle!.explain())!.message).toMatch(/ \(1 is shutting down\)$/);
  });

  test("explain reports a paused queue", async () => {
    const t = task("resting", { input, queue: "resting" });
    await hold(t);
    await house.sluice.pause("resting");
    const [handle] = await enqueue(t, "a");
    expect(await reasons(handle)).toEqual([{ kind: "paused", what: "queue", name: "resting" }]);
    expect((await handle!.explain())!.message).toBe('queue "resting" is paused');
    await house.sluice.resume("resting");
    await running(handle);
  });

  test("explain reports a task that waits for worker capacity or for its turn", async () => {
    const t = task("full", { input });
    const worker = await hold(t, { maxConcurrentTasks: 1, leaseMs: 6_000 });
    const [one] = await enqueue(t, "a");
    await running(one);
    const [two, three] = await enqueue(t, "a", "a");
    const busy = { kind: "busy", workers: 1, capacity: 1, before: 0 };
    await until("a heartbeat", async () => (await two!.explain())!.reasons[0]!.kind === "busy");
    expect(await reasons(two)).toEqual([busy]);
    expect((await three!.explain())!.message).toBe(
      "the worker that could run it is full: at most 1 task at once; 1 task is ahead of it",
    );
    // As if it had room and had not looked yet.
    await worker.stop({ graceMs: 0 });
    await idleWorker();
    expect(await reasons(one)).toEqual([{ kind: "next", before: 0 }]);
    expect(await reasons(three)).toEqual([{ kind: "next", before: 2 }]);
    expect((await three!.explain())!.message).toBe("nothing holds it; 2 tasks are ahead of it");
    const pressure = async (of: string) =>
      house.sql(`update sluice.worker set pressure = 'stopped', pressure_reasons = '{${of}}'`);
    await pressure("memory");
    expect(await reasons(one)).toEqual([{ kind: "pressure", workers: 1, reasons: ["memory"] }]);
    expect((await one!.explain())!.message).toBe("the worker that could run it does not claim now: memory");
    // Some of its places are free, but too few for it to claim.
    await pressure("permits");
    expect(await reasons(one)).toEqual([{ kind: "busy", workers: 1, capacity: 5, before: 0 }]);
  });

  test("explain reports a task whose only workers are silent", async () => {
    const t = task("quiet", { input });
    const [handle] = await enqueue(t, "a");
    await idleWorker();
    expect(await reasons(handle)).toEqual([{ kind: "next", before: 0 }]);
    // It beats every 5 s, and has missed one.
    await house.sql("update sluice.worker set expires_at = sluice.clock() + interval '52 seconds'");
    const { at, message, reasons: all } = (await handle!.explain())!;
    const { heardAt } = all[0] as { heardAt: Date };
    expect(all).toEqual([{ kind: "silent", workers: 1, heardAt: expect.any(Date) as Date, message }]);
    const seconds = Math.round((at.getTime() - heardAt.getTime()) / 1_000);
    expect(seconds).toBeGreaterThanOrEqual(8);
    expect(message).toMatch(/^the worker that could run it has been silent since .*: dead, disconnected, or/);
    expect(message).toContain(`${heardAt.toISOString()} (${seconds} s ago)`);
  });

  test("explain reports a suspect that must run alone after crashes", async () => {
    const t = task("crashes", { input });
    await hold(t);
    const [handle] = await enqueue(t, "a");
    for (let crash = 1; crash <= 3; crash++) {
      await running(handle);
      await house.sql("delete from sluice.worker");
      // Its worker must not claim it immediately.
      await house.sql("update sluice.stream set paused = true where type = 'crashes'");
      await house.sql("select sluice.reap()");
      if (crash < 3) {
        await house.sql("update sluice.stream set paused = false where type = 'crashes'");
        await hold(t);
      }
    }
    const suspect = { kind: "suspect", crashes: 3, worker: null };
    const paused = { kind: "paused", what: "queue", name: "default" };
    await stopWorkers();
    expect(await reasons(handle)).toEqual([paused, NOBODY, suspect]);
    await house.sql("update sluice.stream set paused = false where type = 'crashes'");
    await idleWorker();
    expect(await reasons(handle)).toEqual([suspect]);
    expect((await handle!.explain())!.message).toMatch(/^its worker crashed 3 times while it ran/);
    await house.sql("update sluice.suspect set reserved_by = 7");
    expect(await reasons(handle)).toEqual([{ ...suspect, worker: "idle" }]);
  });

  test("explain reports an item of a run that waits at its window", async () => {
    const item = task("explained-item", { input, limits: [limit("items", { total: 5 })] });
    const each = workflow("explained", { input: type<{ items: Keyed[] }>() }, (w, given) => {
      w.each("each", item, given.items, (one) => one, { window: 2 });
    });
    await hold(item);
    const run = await house.sluice.start(each, {
      items: ["a", "b", "c", "d"].map((key) => ({ key })),
    });
    const items = await until("its items", async () => {
      const page = await run.items("each");
      return page.items.length === 4 && page.items;
    });
    const [one, two, , four] = items.map(({ task: id }) => house.sluice.task(id));
    await running(one);
    await running(two);
    const full = { kind: "window", run: run.id, node: "each", slots: 2, used: 2 };
    const holders = [runs(one, "explained-item"), runs(two, "explained-item")];
    expect(await reasons(four)).toEqual([{ ...full, before: 1, holders }]);
    const explained = (await four!.explain())!;
    expect(explained.workflow).toEqual({ run: run.id, node: "each", item: 3 });
    expect(explained.message).toContain(`the window of node "each" in run ${run.id} is full`);
    await run.pause();
    expect(await reasons(four)).toEqual([
      { kind: "paused", what: "run", name: run.id },
      { ...full, before: 1, holders },
    ]);
    await run.resume();
    await run.cancel();
    await until("its end", async () => (await four!.explain())!.state === "cancelled");
  });

  test("explain reports a parent that waits for its items", async () => {
    const item = task("inner", { input });
    const outer = task("outer", { input });
    workers.push(await house.work([outer.handle(async (_in, ctx) => void (await ctx.map("m", [a], item)))]));
    const [handle] = await enqueue(outer, "a");
    const explained = await until("it to sleep", async () => {
      const found = (await handle!.explain())!;
      return found.state === "waiting" && found.reasons[0]!.kind === "children" && found;
    });
    expect(explained.reasons[0]).toMatchObject({ runs: [expect.stringMatching(/^\d+$/)] });
    const [{ id }] = (await house.sql<{ id: string }>(
      "select t.id::text from sluice.task t join sluice.stream s on s.id = t.stream where s.type = 'inner'",
    )) as [{ id: string }];
    const inner = (await house.sluice.explain(id))!;
    expect(inner.workflow).toEqual({
      run: (explained.reasons[0] as unknown as { runs: string[] }).runs[0],
      node: "m",
      item: 0,
    });
    expect(inner.reasons).toMatchObject([NOBODY]);
  });

  test("explain names a key holder that waits for its own items, and a cancel of either lets the other continue", async () => {
    const crossed = task("crossed", { input, order: ({ key }) => key });
    const item = task("crossed-item", { input, order: ({ key }) => key });
    const both = crowd(2);
    workers.push(
      await house.work([
        crossed.handle(async ({ key }, ctx) => {
          await both.pass(async () => {});
          await ctx.map("m", [{ key: key === "x" ? "y" : "x" }], item);
        }),
        item.handle(() => {}),
      ]),
    );
    const [x, y] = await enqueue(crossed, "x", "y");
    for (const one of [x!, y!])
      await until("it to sleep", async () => (await one.explain())!.reasons[0]?.kind === "children");
    const [map] = (await house.sluice.runs({ task: x!.id })).runs;
    const [first] = (await house.sluice.run(map!.id).items("m")).items;
    expect((await house.sluice.explain(first!.task))!.reasons).toMatchObject([
      { kind: "order", key: "y", holder: { task: y!.id, reason: { kind: "children" } } },
    ]);
    await y!.cancel();
    await x!.result({ timeoutMs: 20_000 });
  });

  test("explain returns null for an unknown task and refuses an invalid id", async () => {
    expect(await house.sluice.explain("999999")).toBeNull();
    expect(await codeOf(() => house.sluice.explain("no id"))).toBe("task_not_found");
  });
});
