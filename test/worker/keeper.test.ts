import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Keeper } from "../../src/keeper/keeper.js";
import type { AnyStatement } from "../../src/postgres/statement.js";

type Answer = (values: unknown[]) => object;

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

/** A keeper over a server that answers as told, and nothing else. What it was asked, by statement. */
function keeperOver(answers: Record<string, Answer>): {
  keeper: Keeper;
  asked: Record<string, unknown[][]>;
} {
  const asked: Record<string, unknown[][]> = {};
  const run = ({ name }: AnyStatement, values: unknown[]): Promise<object[]> => {
    (asked[name] ??= []).push(values);
    const answer = answers[name];
    return Promise.resolve(answer === undefined ? [] : [answer(values)]);
  };
  const quiet = (): void => {};
  const keeper = new Keeper({
    line: { run } as never,
    log: { debug: quiet, info: quiet, warn: quiet, error: quiet },
    clock: { now: () => Date.now() },
    dueIntervalMs: 1_000,
    reapIntervalMs: 1_000,
    history: { succeededMs: 0, failedMs: 0, cancelledMs: 0 },
    onMoved: quiet,
    onUnplaced: quiet,
  });
  return { keeper, asked };
}

/** The first pass over what is to be pruned, and no second. */
async function firstPrune(answer: Answer): Promise<unknown[]> {
  const rested = (): object => ({ pruned: 0, rested: true });
  const { keeper, asked } = keeperOver({ prune_done: rested, workflow_prune: answer });
  keeper.start();
  await vi.advanceTimersByTimeAsync(6_000);
  keeper.stop();
  return asked["workflow_prune"]!.map((values) => values.at(-1));
}

const next = (after: unknown, end: number): string => {
  const at = Number(after) + 500;
  return at >= end ? "0" : String(at);
};

test("old runs are deleted to the last, also where a look finds few of them", async () => {
  const few = (values: unknown[]): object => ({ pruned: 3, after: next(values.at(-1), 2_000) });
  expect(await firstPrune(few)).toEqual(["0", "500", "1000", "1500"]);
});

test("of old runs that are to be kept a few thousand are looked at, and the rest later", async () => {
  const none = (values: unknown[]): object => ({ pruned: 0, after: next(values.at(-1), 1e9) });
  expect(await firstPrune(none)).toHaveLength(10);
});

test("a look goes on where the last one ended", async () => {
  const { keeper, asked } = keeperOver({
    workflow_keep: (values) => ({
      moved: 0,
      next_ms: null,
      unplaced: false,
      after: next(values.at(-1), 1_500),
    }),
    workflow_orphans: ([, a, b]) => ({
      cancelled: 0,
      after: next(a, 1_000),
      after_parent: next(b, 9_000),
    }),
  });
  keeper.start();
  await vi.advanceTimersByTimeAsync(6_000);
  keeper.stop();
  expect(asked["workflow_keep"]!.slice(0, 4).map((v) => v.at(-1))).toEqual([
    "0",
    "500",
    "1000",
    "0",
  ]);
  expect(asked["workflow_orphans"]!.slice(0, 3).map(([, ...walk]) => walk)).toEqual([
    ["0", "0"],
    ["500", "500"],
    ["0", "1000"],
  ]);
});
