import { expect, test } from "vitest";
import { fixedSize, isTooShort, tasksFor } from "../../bench/src/calibrate.js";
import { inputsOf } from "../../bench/src/inputs.js";

test.each([
  ["as many tasks as run in the requested time", 20_000, 3, 70_000],
  ["at least 500 tasks, however low the rate", 0.5, 3, 500],
  ["at most 300,000 tasks, however high the rate", 400_000, 3, 300_000],
])("a calibrated bench backlog has %s", (_, rate, seconds, tasks) => {
  expect(tasksFor(rate, seconds)).toBe(tasks);
});

test("bench backlog sizes are rounded to a few steps near the requested size", () => {
  const sizes = Array.from({ length: 500 }, (_, i) => tasksFor(1_000 + i * 100, 1));
  expect(new Set(sizes).size).toBeLessThan(15);
  for (const [i, size] of sizes.entries()) {
    expect(Math.abs(Math.log(size / (1_000 + i * 100)))).toBeLessThan(Math.log(1.31));
  }
});

test("a bench backlog size accepts a time factor, a multiple and a minimum", () => {
  expect(tasksFor(50_000, 3, { times: 4 })).toBe(700_000);
  expect(tasksFor(2_100, 3, { multipleOf: 5_000 })).toBe(5_000);
  expect(tasksFor(10, 3, { multipleOf: 5_000 })).toBe(5_000);
  expect(tasksFor(10, 3, { min: 40_000 })).toBe(50_000);
});

test("a bench probe that finishes at once is too short to calibrate by", () => {
  const after = (seconds: number) => ({ value: 1, facts: { seconds } });
  expect(isTooShort(after(0.1), 3)).toBe(true);
  expect(isTooShort(after(1), 3)).toBe(false);
});

test("a bench workload sized by count or rate needs no probe", () => {
  const bench = { quick: false, seconds: 3 };
  expect(fixedSize({ by: "seconds" }, bench)).toBeNull();
  expect(fixedSize({ by: "count", tasks: 300, quick: 50 }, bench)).toBe(300);
  expect(fixedSize({ by: "count", tasks: 300, quick: 50 }, { ...bench, quick: true })).toBe(50);
  expect(fixedSize({ by: "rate", perSecond: 2_000 }, bench)).toBe(6_000);
});

test("bench inputs interleave their keys or list them contiguously", () => {
  const keysOf = (arrangement: "interleaved" | "contiguous"): unknown[] =>
    inputsOf(6, { count: 3, arrangement }).map(({ key }) => key);
  expect(keysOf("interleaved")).toEqual(["key-0", "key-1", "key-2", "key-0", "key-1", "key-2"]);
  expect(keysOf("contiguous")).toEqual(["key-0", "key-0", "key-1", "key-1", "key-2", "key-2"]);
});
