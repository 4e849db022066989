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

test("a sequential scan of a big table is a plan fault, however few rows it returns", () => {
  const plan = node("Limit", { Plans: [node("Seq Scan", { "Relation Name": "ready" })] });
  expect(faultsOf(plan, bounds)).toEqual(["Seq Scan on ready reads 1 rows from end to end"]);
});

test("a sequential scan of a small table is not a plan fault", () => {
  expect(faultsOf(node("Seq Scan", { "Relation Name": "worker" }), bounds)).toEqual([]);
});

test("rows removed by a filter are summed over all loops of a plan node", () => {
  const scan = (loops: number): PlanNode =>
    node("Index Scan", {
      "Relation Name": "ready",
      "Rows Removed by Filter": 5,
      "Actual Loops": loops,
    });
  expect(faultsOf(scan(160), bounds)).toEqual([]);
  expect(faultsOf(scan(201), bounds)).toEqual(["Index Scan on ready reads 1,206 rows and keeps 201"]);
});

test("rows removed by a join filter are a plan fault", () => {
  const join = node("Nested Loop", { "Rows Removed by Join Filter": 5_000 });
  expect(faultsOf(node("Result", { Plans: [join] }), bounds)).toEqual([
    "Nested Loop: rows removed by join filter 5,000",
  ]);
});

test("a scan that reads more rows than a batch needs is a plan fault that reports how many rows it keeps", () => {
  const scan = node("Index Only Scan", { "Relation Name": "task", "Actual Rows": 1_001 });
  expect(faultsOf(scan, bounds)).toEqual(["Index Only Scan on task reads 1,001 rows and keeps 1,001"]);
});
