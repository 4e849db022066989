import { describe, expect, test } from "vitest";
import { BatchSize } from "../../src/core/claim-policy.js";

/** A worker that drains a backlog, with the time until each reply and the time that its tasks take. */
function drain(batch: BatchSize, { claims, stayMs }: { claims: number; stayMs: number }): number[] {
  const sizes: number[] = [];
  let [completed, nowMs] = [0, 0];
  for (let i = 0; i < claims; i++) {
    const want = batch.max;
    sizes.push(want);
    nowMs += stayMs;
    completed += want;
    batch.learn({ want }, want, { inHand: want, completed, nowMs });
  }
  return sizes;
}

describe("the batch size without a configured value", () => {
  test("claims of short tasks double from 50 to 500 while they come back full", () => {
    expect(drain(new BatchSize(undefined), { claims: 6, stayMs: 5 })).toEqual([50, 100, 200, 400, 500, 500]);
  });

  test("claims of long tasks do not grow", () => {
    expect(drain(new BatchSize(undefined), { claims: 4, stayMs: 60 })).toEqual([50, 50, 50, 50]);
  });

  test("a claim that returns less than a quarter resets the batch size, and one that returns more keeps it", () => {
    const batch = new BatchSize(undefined);
    drain(batch, { claims: 6, stayMs: 5 });
    const load = { inHand: 499, completed: 10_000, nowMs: 1_000 };
    batch.learn({ want: 500 }, 125, load);
    expect(batch.max).toBe(500);
    batch.learn({ want: 500 }, 124, load);
    expect(batch.max).toBe(50);
  });

  test("tasks that become longer reset the batch size", () => {
    const batch = new BatchSize(undefined);
    drain(batch, { claims: 6, stayMs: 5 });
    batch.learn({ want: 500 }, 500, { inHand: 1_000, completed: 2_000, nowMs: 10_000 });
    expect(batch.max).toBe(50);
  });

  test("a claim smaller than the batch size does not change it", () => {
    const batch = new BatchSize(undefined);
    batch.learn({ want: 16 }, 16, { inHand: 16, completed: 16, nowMs: 1 });
    expect(batch.max).toBe(50);
  });
});

test("a configured batch size is a hard cap", () => {
  expect(drain(new BatchSize(20), { claims: 4, stayMs: 1 })).toEqual([20, 20, 20, 20]);
});
