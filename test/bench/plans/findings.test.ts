import { expect, test } from "vitest";
import type { PlanNode } from "../../../bench/src/plans/explain.js";
import { faultsOf } from "../../../bench/src/plans/findings.js";

const bounds = { big: ["ready", "task"], rows: 1_000, pages: 2_500 };

const node = (type: string, more: Record<string, unknown> = {}): PlanNode => ({
  "Node Type": type,
  "Actual Rows": 1,
  "Actual Loops": 1,
  ...more,
});

test("a big table that is read from end to end is a fault, however few rows come of it", () => {
  const plan = node("Limit", { Plans: [node("Seq Scan", { "Relation Name": "ready" })] });
  expect(faultsOf(plan, bounds)).toEqual(["Seq Scan on ready reads 1 rows from end to end"]);
});

test("a small table may be read from end to end", () => {
  expect(faultsOf(node("Seq Scan", { "Relation Name": "worker" }), bounds)).toEqual([]);
});

test("rows that a filter throws away are counted over all loops", () => {
  const scan = (loops: number): PlanNode =>
    node("Index Scan", {
      "Relation Name": "ready",
      "Rows Removed by Filter": 5,
      "Actual Loops": loops,
    });
  expect(faultsOf(scan(160), bounds)).toEqual([]);
  expect(faultsOf(scan(201), bounds)).toEqual(["Index Scan on ready reads 1,206 rows and keeps 201"]);
});

test("rows that a join throws away are a fault, too", () => {
  const join = node("Nested Loop", { "Rows Removed by Join Filter": 5_000 });
  expect(faultsOf(node("Result", { Plans: [join] }), bounds)).toEqual([
    "Nested Loop: rows removed by join filter 5,000",
  ]);
});

test("a scan that reads more than a batch needs is a fault, and says how much it keeps", () => {
  const scan = node("Index Only Scan", { "Relation Name": "task", "Actual Rows": 1_001 });
  expect(faultsOf(scan, bounds)).toEqual(["Index Only Scan on task reads 1,001 rows and keeps 1,001"]);
});
