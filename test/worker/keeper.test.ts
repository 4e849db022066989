import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Keeper } from "../../src/keeper/keeper.js";
import type { AnyStatement } from "../../src/postgres/statement.js";

/** What a look finds if nothing else is said: we lead, there is nothing to do, and the next look is in a second. */
const idle = {
  leads: true,
  live: false,
  dead: false,
  due: false,
  ticks: false,
  runs: false,
  maps: false,
  ended: false,
  next_ms: 1_000,
  due_ms: null,
};

type Answer = (values: unknown[]) => object;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A keeper over a mocked server, and the values of its statements by name. */
function keeperOver(
  answers: Record<string, Answer>,
  found: Partial<typeof idle> = {},
  pollIntervalMs = 1_000,
): {
  keeper: Keeper;
  asked: Record<string, unknown[][]>;
} {
  const asked: Record<string, unknown[][]> = {};
  const look = (): object => ({ ...idle, ...found });
  const run = ({ name }: AnyStatement, values: unknown[]): Promise<object[]> => {
    (asked[name] ??= []).push(values);
    const answer = name === "keeper_poll" ? look : answers[name];
    return Promise.resolve(answer === undefined ? [] : [answer(values)]);
  };
  const quiet = (): void => {};
  const keeper = new Keeper({
    connection: { run } as never,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    clock: { now: () => Date.now() },
    pollIntervalMs,
    listening: () => true,
    history: { succeededMs: 0, failedMs: 0, cancelledMs: 0 },
    onMoved: quiet,
    onUnplaced: quiet,
  });
  return { keeper, asked };
}

/** The first pass over what is to be pruned, and no second. */
async function firstPrune(answer: Answer): Promise<unknown[]> {
  const rested = (): object => ({ pruned: 0, rested: true });
  const answers = { prune_done: rested, workflow_prune: answer };
  const { keeper, asked } = keeperOver(answers, { ended: true });
  keeper.start();
  await vi.advanceTimersByTimeAsync(6_000);
  await keeper.stop();
  return asked["workflow_prune"]!.map((values) => values.at(-1));
}

const next = (after: unknown, end: number): string => {
  const at = Number(after) + 500;
  return at >= end ? "0" : String(at);
};

test("a keeper prunes all old runs, also if each statement finds few of them", async () => {
  const few = (values: unknown[]): object => ({ pruned: 3, after: next(values.at(-1), 2_000) });
  expect(await firstPrune(few)).toEqual(["0", "500", "1000", "1500"]);
});

test("a keeper examines a few thousand old runs that must be kept, and the rest later", async () => {
  const none = (values: unknown[]): object => ({ pruned: 0, after: next(values.at(-1), 1e9) });
  expect(await firstPrune(none)).toHaveLength(10);
});

test("a keeper check continues where the last one ended", async () => {
  const answers = {
    workflow_keep: (values: unknown[]) => ({
      moved: 0,
      next_ms: null,
      unplaced: false,
      after: next(values.at(-1), 1_500),
    }),
    workflow_orphans: ([, a, b]: unknown[]) => ({
      cancelled: 0,
      after: next(a, 1_000),
      after_parent: next(b, 9_000),
    }),
  };
  const { keeper, asked } = keeperOver(answers, { runs: true, maps: true });
  keeper.start();
  await vi.advanceTimersByTimeAsync(6_000);
  await keeper.stop();
  expect(asked["workflow_keep"]!.slice(0, 4).map((v) => v.at(-1))).toEqual(["0", "500", "1000", "0"]);
  expect(asked["workflow_orphans"]!.slice(0, 3).map(([, ...walk]) => walk)).toEqual([
    ["0", "0"],
    ["500", "500"],
    ["0", "1000"],
  ]);
});

test("a keeper that does not lead only checks, and recovers tasks of dead workers", async () => {
  const found = { leads: false, live: true, due: true, ticks: true, runs: true, maps: true };
  const { keeper, asked } = keeperOver({}, { ...found, dead: true });
  keeper.start();
  await vi.advanceTimersByTimeAsync(20_000);
  await keeper.stop();
  expect(Object.keys(asked).toSorted()).toEqual(["keeper_poll", "reap"]);
});

test("a leading keeper without other work prunes history, and gives up the lead when it stops", async () => {
  const { keeper, asked } = keeperOver({}, { next_ms: 2_500 });
  keeper.start();
  await vi.advanceTimersByTimeAsync(60_000);
  await keeper.stop();
  const counts = Object.entries(asked).map(([name, values]) => [name, values.length]);
  expect(Object.fromEntries(counts)).toEqual({
    keeper_poll: 25,
    keep_leave: 1,
    prune_done: 12,
    prune_expired: 2,
    workflow_prune_graphs: 1,
    forget_limits: 1,
    walked_rows: 4,
  });
});

test("a keeper prunes notes every 10 s while tasks are live, and every 30 s afterwards", async () => {
  const found = { live: true, next_ms: 1_000 };
  const { keeper, asked } = keeperOver({}, found);
  keeper.start();
  await vi.advanceTimersByTimeAsync(60_000);
  const busy = asked["prune_expired"]!.length;
  found.live = false;
  await vi.advanceTimersByTimeAsync(120_000);
  await keeper.stop();
  expect(busy).toBeGreaterThanOrEqual(6);
  expect(asked["prune_expired"]!.length - busy).toBeLessThanOrEqual(6);
  expect(asked["prune_expired"]!.length - busy).toBeGreaterThanOrEqual(3);
});

test("a keeper checks when a task of its own worker is due, although another leads", async () => {
  const { keeper, asked } = keeperOver({}, { leads: false, due: true, next_ms: 60_000 });
  keeper.start();
  await vi.advanceTimersByTimeAsync(1_000);
  expect(asked["due"]).toBeUndefined();
  keeper.expect(200);
  await vi.advanceTimersByTimeAsync(199);
  expect(asked["keeper_poll"]).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(5);
  expect(asked["keeper_poll"]).toHaveLength(2);
  expect(asked["due"]).toHaveLength(1);
  await keeper.stop();
});

test("many concurrent wake-ups of a keeper cause few checks", async () => {
  const { keeper, asked } = keeperOver({}, { next_ms: 60_000 });
  keeper.start();
  for (let i = 0; i < 1_000; i++) {
    keeper.notified(keeper.id);
    await vi.advanceTimersByTimeAsync(1);
  }
  await keeper.stop();
  expect(asked["keeper_poll"]!.length).toBeLessThanOrEqual(250);
});

test("exactly 1,000 due tasks do not delay the tasks that are due next", async () => {
  const moved = [1_000, 0];
  const answers = { due: () => ({ moved: moved.shift() ?? 1, next_ms: null }) };
  const { keeper, asked } = keeperOver(answers, { due: true, next_ms: 50 }, 60_000);
  keeper.start();
  await vi.advanceTimersByTimeAsync(20);
  expect(asked["due"]).toHaveLength(2);
  await vi.advanceTimersByTimeAsync(60);
  expect(asked["due"]).toHaveLength(3);
  await keeper.stop();
});

test("due tasks locked by an open transaction are retried after 2.5 s, however long the poll interval", async () => {
  const answers = { due: () => ({ moved: 0, next_ms: null }) };
  const { keeper, asked } = keeperOver(answers, { due: true, next_ms: 100 }, 60_000);
  keeper.start();
  await vi.advanceTimersByTimeAsync(2_400);
  expect(asked["due"]).toHaveLength(1);
  await vi.advanceTimersByTimeAsync(300);
  expect(asked["due"]).toHaveLength(2);
  await keeper.stop();
});

test("a keeper that loses and regains the lead still performs its rare duties", async () => {
  const found = { leads: true, next_ms: 1_000 };
  const { keeper, asked } = keeperOver({}, found);
  keeper.start();
  for (let i = 0; i < 8; i++) {
    await vi.advanceTimersByTimeAsync(10_000);
    found.leads = !found.leads;
  }
  expect(asked["workflow_prune_graphs"]).toHaveLength(1);
  expect(asked["prune_done"]!.length).toBeGreaterThanOrEqual(6);
  for (let i = 0; i < 8; i++) {
    await vi.advanceTimersByTimeAsync(10_000);
    found.leads = !found.leads;
  }
  await keeper.stop();
  // Every 30 s, or 10 s later while another leads.
  expect(asked["prune_expired"]!.length).toBeGreaterThanOrEqual(3);
});

test("a keeper that stops while it becomes the leader gives up the lead", async () => {
  const { keeper, asked } = keeperOver({});
  keeper.start();
  vi.advanceTimersByTime(1);
  await keeper.stop();
  expect(asked["keeper_poll"]).toHaveLength(1);
  expect(asked["keep_leave"]).toHaveLength(1);
});
