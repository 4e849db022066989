import { describe, expect, test } from "vitest";
import { isSluiceError, limit, task, type, workflow } from "../../src/index.js";
import { ended, signal, until, type Scene } from "../flow/scene.js";
import { fanOut, Hands, listener, numbers, rowsOf, sorted, workflowScene } from "./scene.js";

const PATIENCE = { timeoutMs: 30_000 };

/** The number of ready and running tasks in the database. */
async function letThrough(s: Scene): Promise<number> {
  const [row] = await rowsOf<{ n: number }>(
    s,
    "select ((select count(*) from sluice.ready) + (select count(*) from sluice.running))::int as n",
  );
  return row!.n;
}

/** Two workers with room for far more tasks than the window admits. */
async function workers(s: Scene, hands: Hands, last: ReturnType<typeof listener>): Promise<void> {
  for (let i = 0; i < 2; i++) {
    await s.worker({
      handlers: [hands.handler, last.handler],
      maxConcurrentTasks: 20,
      pollIntervalMs: 20,
    });
  }
}

describe.each([
  { items: 20, window: 3, peak: 3 },
  { items: 5, window: 3, peak: 3 },
  { items: 1, window: 3, peak: 1 },
  { items: 4, window: 1, peak: 1 },
  { items: 3, window: 10, peak: 3 },
])("$items items with window $window", ({ items, window, peak }) => {
  test(`run at most ${peak} at once, each once and in the order of the list, and the next node runs once`, async () => {
    const s = await workflowScene();
    const hands = new Hands();
    const last = listener();
    await workers(s, hands, last);
    const run = await s.sluice.start(fanOut(window), { items: numbers(items) });
    for (let left = items; left > 0; left--) {
      await hands.full(Math.min(window, left));
      await ended(s, items - left);
      // The database itself admits no more than that.
      expect(await letThrough(s)).toBe(Math.min(window, left));
      expect(last.heard).toEqual([]);
      hands.endOldest();
    }
    const { counts } = await run.result(PATIENCE);
    expect(hands.peak).toBe(peak);
    expect(sorted(hands.began)).toEqual(numbers(items));
    // The next item is admitted only when one has ended. Items that start together may report in any order.
    expect(hands.began.slice(window)).toEqual(numbers(items).slice(window));
    const all = { total: items, succeeded: items, failed: 0, cancelled: 0 };
    expect(counts).toEqual(all);
    expect(last.heard).toEqual([{ results: numbers(items).map((i) => i * 10), counts: all }]);
    expect(await s.sluice.counts()).toMatchObject({ succeeded: items + 1, failed: 0, running: 0 });
  });
});

test("an empty list ends immediately, and the next node runs", async () => {
  const s = await workflowScene();
  const hands = new Hands();
  const last = listener();
  await workers(s, hands, last);
  const run = await s.sluice.start(fanOut(3), { items: [] });
  const counts = { total: 0, succeeded: 0, failed: 0, cancelled: 0 };
  expect(await run.result(PATIENCE)).toEqual({ last: { results: [], counts }, counts });
  expect([hands.began, last.heard.length]).toEqual([[], 1]);
});

test("items that are not a list fail the node with an error", async () => {
  const s = await workflowScene();
  const run = await s.sluice.start(fanOut(3), { items: 7 as never });
  await expect(run.result(PATIENCE)).rejects.toMatchObject({
    code: "workflow_failed",
    message: expect.stringContaining('node "each": the items must be a list, not') as string,
    details: { nodes: [{ node: "each", error: { code: "items_not_a_list" } }] },
  });
});

describe("an item that fails for good", () => {
  async function begun(onError: "failFast" | "finish" | "collect") {
    const s = await workflowScene();
    const hands = new Hands();
    const last = listener();
    await s.worker({
      handlers: [hands.handler, last.handler],
      maxConcurrentTasks: 20,
      pollIntervalMs: 20,
      leaseMs: 6_000,
    });
    const run = await s.sluice.start(fanOut(3, onError), { items: numbers(8) });
    await hands.full(3);
    return { s, hands, last, run };
  }

  test("failFast cancels the other items, also running ones, and skips the next node", async () => {
    const { hands, last, run } = await begun("failFast");
    hands.active.get(1)!.fail();
    const failure: unknown = await run.result(PATIENCE).catch((e: unknown) => e);
    expect(failure).toMatchObject({
      code: "workflow_failed",
      message: `run ${run.id} of fan-out failed: node "each", item 1: no 1`,
      details: { workflow: "fan-out", nodes: [{ node: "each", item: 1, recovered: false }] },
    });
    expect(sorted(hands.began)).toEqual([0, 1, 2]);
    const status = await run.status();
    expect(status!.nodes.map(({ name, state, counts }) => [name, state, counts])).toEqual([
      ["each", "failed", { total: 8, succeeded: 0, failed: 1, cancelled: 7 }],
      ["last", "skipped", { total: 0, succeeded: 0, failed: 0, cancelled: 0 }],
    ]);
    expect([last.heard, hands.active.size]).toEqual([[], 0]);
  });

  test("finish runs the other items, then fails the node", async () => {
    const { hands, last, run } = await begun("finish");
    hands.active.get(1)!.fail();
    hands.letGo();
    await expect(run.result(PATIENCE)).rejects.toSatisfy((e) => isSluiceError(e, "workflow_failed"));
    expect(sorted(hands.began)).toEqual(numbers(8));
    expect((await run.status())!.nodes[0]!.counts).toEqual({
      total: 8,
      succeeded: 7,
      failed: 1,
      cancelled: 0,
    });
    expect(last.heard).toEqual([]);
  });

  test("collect runs the other items, and the failed one has null as its result", async () => {
    const { hands, run } = await begun("collect");
    hands.active.get(1)!.fail();
    hands.letGo();
    const result = (await run.result(PATIENCE)) as { counts: object; last: { results: unknown } };
    expect(result.counts).toEqual({ total: 8, succeeded: 7, failed: 1, cancelled: 0 });
    expect(result.last.results).toEqual(numbers(8).map((i) => (i === 1 ? null : i * 10)));
  });
});

test("a window can be widened and narrowed while its items run", async () => {
  const s = await workflowScene();
  const hands = new Hands();
  const last = listener();
  await workers(s, hands, last);
  const run = await s.sluice.start(fanOut(2), { items: numbers(12) });
  await hands.full(2);
  expect(await run.window("each", 4)).toBe(true);
  await hands.full(4);
  expect(await letThrough(s)).toBe(4);
  expect(await run.window("each", 1)).toBe(true);
  // Running items may finish. None follows until a place is free.
  for (let left = 4; left > 1; left--) {
    await hands.full(left);
    hands.endOldest();
  }
  await hands.full(1);
  await ended(s, 3);
  expect(await letThrough(s)).toBe(1);
  expect((await run.status())!.nodes[0]).toMatchObject({ window: 1, started: 1 });
  expect(await run.window("last", 1)).toBe(false);
  expect(await run.window("none", 1)).toBe(false);
  await run.window("each", 12);
  await until("all to begin", () => hands.began.length === 12);
  hands.letGo();
  await run.result(PATIENCE);
});

test("items that wait at a window occupy no slot of their key, also while paused", async () => {
  const s = await workflowScene();
  const tenant = limit("tenant", { perKey: 2 });
  const limits = [{ limit: tenant, key: () => "t" }];
  const [item, other] = [task("item", { limits, input: type<number>() }), task("other", { limits })];
  const started = signal();
  const go = signal();
  const fan = workflow("fan", { input: type<{ items: number[] }>() }, (w, input) => {
    w.each("all", item, input.items, (n) => n, { window: 1 });
  });
  const handler = item.handle(async () => {
    started.resolve();
    await go.promise;
  });
  await s.worker({ handlers: [handler, other.handle(() => "done")], pollIntervalMs: 50 });
  const run = await s.sluice.start(fan, { items: [1, 2, 3, 4] });
  await started.promise;
  expect(await (await s.sluice.enqueue(other)).result(PATIENCE)).toBe("done");
  await run.pause();
  expect(await (await s.sluice.enqueue(other)).result(PATIENCE)).toBe("done");
  await run.resume();
  go.resolve();
  await run.result(PATIENCE);
});
