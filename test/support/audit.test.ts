import { expect, test } from "vitest";
import { Audit, type AuditRun } from "./audit.js";

const run = (task: number, start: number, end: number | null, about: Partial<AuditRun> = {}): AuditRun => ({
  task: String(task),
  attempt: 1,
  claim: `${task}-${start}`,
  type: "t",
  process: "p",
  orderKey: null,
  limitKeys: ["l"],
  start,
  end,
  ended: end !== null,
  ...about,
});

const ordered = (task: number, start: number, end: number | null): AuditRun => run(task, start, end, { orderKey: "k" });

test("the audit counts concurrent executions and treats a slot released at the same moment as free", () => {
  expect(new Audit([run(1, 0, 10), run(2, 10, 20), run(3, 15, 20)]).peakOf("l")).toBe(2);
  expect(new Audit([run(1, 0, null), run(2, 100, 101)]).peakOf("l")).toBe(2);
  expect(new Audit([]).peakOf("l")).toBe(0);
});

test("the audit finds lost tasks and tasks that completed twice", () => {
  const audit = new Audit([run(1, 0, 10), run(1, 20, 30), run(2, 0, null)]);
  expect(audit.lost(["1", "2", "3"])).toEqual(["2", "3"]);
  expect(audit.twice()).toEqual(["1"]);
});

test("the audit finds overlaps and inversions in an order key, and allows repeated executions", () => {
  expect(new Audit([ordered(1, 0, 10), ordered(2, 10, 20)]).disorder()).toEqual([]);
  expect(new Audit([ordered(1, 0, 5), ordered(1, 6, 9), ordered(2, 10, 20)]).disorder()).toEqual([]);
  expect(new Audit([ordered(1, 0, 10), ordered(2, 9, 20)]).disorder()).toEqual(["k: 1 and 2 overlap"]);
  expect(new Audit([ordered(2, 0, 10), ordered(1, 10, 20)]).disorder()).toEqual(["k: 1 ran after 2"]);
  expect(new Audit([ordered(1, 0, 5), ordered(2, 6, 7), ordered(1, 8, 9)]).disorder()).toEqual(["k: 1 ran after 2"]);
  expect(new Audit([ordered(1, 0, null), ordered(2, 100, 101)]).disorder()).toEqual(["k: 1 and 2 overlap"]);
});
