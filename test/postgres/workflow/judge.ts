import type { Nodes } from "./play.js";
import { RANDOM_INPUT } from "./random.js";

/** The tasks of a node as they ended. */
export interface Ended {
  readonly succeeded: number;
  readonly failed: number;
  readonly cancelled: number;
}

type Fate = "succeeded" | "failed" | "cancelled" | "skipped";

/** What a run that was not cancelled must have come to, given how each of its tasks ended. Written from the promises, not from the SQL. */
export function judge(nodes: Nodes, tasks: (name: string) => Ended): { nodes: Record<string, Fate>; state: string } {
  const fates: Record<string, Fate> = {};
  // Skipped because of a failure above, and not by a condition.
  const starved = new Set<string>();
  const held: Record<string, boolean> = {};
  for (const [name, [kind, node]] of Object.entries(nodes)) {
    const edges = (node.after ?? []).map((e) => (typeof e === "string" ? { node: e, on: "success" as const } : e));
    const verdicts = edges.map((e) => {
      const fate = fates[e.node]!;
      const lost = fate === "failed" || fate === "cancelled" || starved.has(e.node);
      switch (e.on) {
        case "end":
          return "met";
        case "success":
          return fate === "succeeded" ? "met" : lost ? "lost" : "neutral";
        case "failure":
          return fate === "failed" || fate === "cancelled" ? "met" : lost ? "lost" : "unmet";
        default:
          if (fate !== "succeeded") return lost ? "lost" : "unmet";
          return held[e.node] === (e.on === "then") ? "met" : "unmet";
      }
    });
    // Guards only let through: that one holds gives a node nothing to work with.
    const needs = verdicts.filter((_, i) => ["success", "end"].includes(edges[i]!.on));
    if (verdicts.includes("lost")) starved.add(name);
    const runs =
      !verdicts.includes("lost") && !verdicts.includes("unmet") && (needs.length === 0 || needs.includes("met"));
    fates[name] = runs ? fateOf(kind, node, tasks(name)) : "skipped";
    if (kind === "when") held[name] = truth(node);
  }
  return { nodes: fates, state: stateOf(nodes, fates) };
}

function truth(node: Nodes[string][1]): boolean {
  const path = (node.ref as { path: string[] }).path;
  return Boolean(RANDOM_INPUT[path[0] as keyof typeof RANDOM_INPUT]);
}

function fateOf(kind: string, node: Nodes[string][1], ended: Ended): Fate {
  if (kind === "sleep" || kind === "waitFor" || kind === "when") return "succeeded";
  if (kind === "each") {
    const count = itemsOf(node);
    if (count === null) return "failed";
    if (ended.succeeded + ended.failed + ended.cancelled !== count)
      throw new Error(`${count} items, but tasks ended ${JSON.stringify(ended)}`);
    if (node.onError === "collect") return "succeeded";
  } else if (ended.succeeded + ended.failed + ended.cancelled !== 1) {
    throw new Error(`one task, but tasks ended ${JSON.stringify(ended)}`);
  }
  return ended.failed > 0 ? "failed" : ended.cancelled > 0 ? "cancelled" : "succeeded";
}

/** How many items an each has, null if its items are no list. */
function itemsOf(node: Nodes[string][1]): number | null {
  if (Array.isArray(node.items)) return node.items.length;
  const path = (node.items as { path: string[] }).path;
  const found = RANDOM_INPUT[path[0] as keyof typeof RANDOM_INPUT];
  return Array.isArray(found) ? found.length : null;
}

function stateOf(nodes: Nodes, fates: Record<string, Fate>): string {
  const caught = (name: string): boolean =>
    Object.entries(nodes).some(
      ([other, [, node]]) =>
        fates[other] === "succeeded" &&
        (node.after ?? []).some(
          (e) => typeof e !== "string" && e.node === name && e.on === "failure" && e.recovers === true,
        ),
    );
  const open = Object.entries(fates).filter(([name]) => !caught(name));
  if (open.some(([, fate]) => fate === "failed")) return "failed";
  return open.some(([, fate]) => fate === "cancelled") ? "cancelled" : "succeeded";
}
