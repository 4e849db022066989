import { expect, test } from "vitest";
import { audit, type Ledger } from "../../bench/src/audit.js";
import { Watch } from "../../bench/src/process/watch.js";

/** [key, n, began, ended] */
type Row = readonly [key: string, n: number, beganMs: number, endedMs: number];

function ledger(...rows: Row[]): Ledger {
  const watch = new Watch(rows.length);
  for (const [key, n, beganMs, endedMs] of rows) {
    const at = watch.begin({ n, key }, beganMs);
    if (!Number.isNaN(endedMs)) watch.end(at, endedMs);
  }
  return watch.ledger();
}

test("the bench audit reports no inversion or overlap for tasks of a key that run serially in order", () => {
  const found = audit([ledger(["a", 0, 1, 2], ["b", 1, 1.5, 4], ["a", 2, 2, 3], ["a", 7, 3, 5])]);
  expect(found).toEqual({ inversions: 0, overlaps: 0, peak: 2, peakPerKey: 1 });
});

test("the bench audit counts every start with a smaller n than an earlier start of its key as an inversion", () => {
  const found = audit([ledger(["a", 5, 1, 2], ["a", 3, 2, 3], ["a", 4, 3, 4], ["b", 0, 4, 5])]);
  expect(found.inversions).toBe(2);
});

test("the bench audit counts a start while another task of its key runs as an overlap, also across processes", () => {
  const [one, other] = [ledger(["a", 0, 1, 5]), ledger(["a", 1, 3, 4], ["b", 2, 3.5, 4])];
  expect(audit([one, other])).toEqual({ inversions: 0, overlaps: 1, peak: 3, peakPerKey: 2 });
});

test("a task that starts at the millisecond another ends does not overlap it in the bench audit", () => {
  const found = audit([ledger(["a", 0, 1, 2], ["a", 1, 2, 3])]);
  expect([found.overlaps, found.peak]).toEqual([0, 1]);
});

test("the bench audit treats no-ops within one clock tick as serial", () => {
  const found = audit([ledger(["a", 0, 1, 1], ["a", 1, 1, 1], ["a", 2, 1, 1])]);
  expect(found).toEqual({ inversions: 0, overlaps: 0, peak: 1, peakPerKey: 1 });
});

test("the bench audit counts a task without an end as still running", () => {
  const found = audit([ledger(["a", 0, 1, NaN], ["a", 1, 2, 3])]);
  expect([found.overlaps, found.peakPerKey]).toEqual([1, 2]);
});

test("the bench audit reports only the peak for tasks without a key", () => {
  const watch = new Watch(2);
  watch.end(watch.begin({ n: 1 }, 1), 3);
  watch.end(watch.begin({ n: 0 }, 2), 3);
  const found = audit([watch.ledger()]);
  expect(found).toEqual({ inversions: 0, overlaps: 0, peak: 2, peakPerKey: 0 });
});
