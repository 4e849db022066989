import { createHash } from "node:crypto";
import type { Graph } from "./graph.js";

/** Returns the same digest for equal graphs, regardless of the order of their keys. */
export function digestOf(graph: Graph): string {
  return createHash("sha256").update(canonical(graph)).digest("hex");
}

/** Returns JSON text with the keys of every object sorted. */
function canonical(value: unknown): string {
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(",")}]`;
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1));
  return `{${entries.map(([key, of]) => `${JSON.stringify(key)}:${canonical(of)}`).join(",")}}`;
}
