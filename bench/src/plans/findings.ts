import type { PlanNode } from "./explain.js";

/** Something in a plan that would grow with the backlog. */
export interface Finding {
  readonly scenario: string;
  readonly call: string;
  readonly what: string;
}

/** How much a call may touch. */
export interface Bounds {
  /** Tables that grow with the backlog: they must not be read from end to end, not even with an end in sight. */
  readonly big: readonly string[];
  /** Rows that one scan may read, or one filter throw away, over all its loops. */
  readonly rows: number;
  readonly pages: number;
}

const REMOVED = ["Rows Removed by Filter", "Rows Removed by Join Filter", "Rows Removed by Index Recheck"] as const;

/** What one plan has that it must not. */
export function faultsOf(plan: PlanNode, bounds: Bounds): string[] {
  return [...faultsHere(plan, bounds), ...(plan.Plans ?? []).flatMap((p) => faultsOf(p, bounds))];
}

function faultsHere(node: PlanNode, bounds: Bounds): string[] {
  const loops = node["Actual Loops"] ?? 1;
  const kept = (node["Actual Rows"] ?? 0) * loops;
  // Rows removed are means over the loops, as rows are.
  const removed = REMOVED.map((key) => ({ key, rows: Number(node[key] ?? 0) * loops }));
  const read = removed.reduce((sum, { rows }) => sum + rows, kept);
  const where = `${node["Node Type"]}${relationOf(node)}`;
  if (node["Node Type"] === "Seq Scan" && bounds.big.includes(node["Relation Name"] ?? ""))
    return [`${where} reads ${count(read)} rows from end to end`];
  if (read > bounds.rows && node["Relation Name"] !== undefined)
    return [`${where} reads ${count(read)} rows and keeps ${count(kept)}`];
  return removed
    .filter(({ rows }) => rows > bounds.rows)
    .map(({ key, rows }) => `${where}: ${key.toLowerCase()} ${count(rows)}`);
}

function relationOf(node: PlanNode): string {
  const relation = node["Relation Name"];
  return relation === undefined ? "" : ` on ${relation}`;
}

function count(n: number): string {
  return Math.round(n).toLocaleString("en");
}
