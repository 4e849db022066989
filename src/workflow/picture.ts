import type { GraphNode, On, TemplateData } from "./graph.js";
import { partsOf } from "./parts.js";
import { pathText } from "./proxy.js";

/** The status of one node of a run. */
export interface NodeStatus {
  readonly state: NodeState;
  /** For an `each`: the number of items, and how many of them have ended in each state. */
  readonly counts?: Readonly<Record<"total" | "succeeded" | "failed" | "cancelled", number>>;
}

/** The states of a node, as the database reports them. */
export type NodeState = "pending" | "held" | "placing" | "running" | "succeeded" | "failed" | "cancelled" | "skipped";

/** The status of a run's nodes, by name. */
export type GraphStatus = Readonly<Record<string, NodeStatus>>;

/** Fill, border and text color of a node in each state; `none` if no run is shown. */
export const COLOURS: Readonly<Record<NodeState | "none", readonly [string, string, string]>> = {
  none: ["#f6f8fa", "#57606a", "#1f2328"],
  pending: ["#ffffff", "#8c959f", "#57606a"],
  held: ["#fbefff", "#8250df", "#512a97"],
  placing: ["#ddf4ff", "#0969da", "#0a3069"],
  running: ["#ddf4ff", "#0969da", "#0a3069"],
  succeeded: ["#dafbe1", "#1a7f37", "#116329"],
  failed: ["#ffebe9", "#cf222e", "#82071e"],
  cancelled: ["#fff8c5", "#9a6700", "#633c01"],
  skipped: ["#f6f8fa", "#afb8c1", "#8c959f"],
};

/** The label of an edge. */
export const EDGE_WORDS: ReadonlyMap<On, string> = new Map([
  ["end", "ended"],
  ["failure", "failed"],
  ["then", "yes"],
  ["else", "no"],
]);

/** Describes in a few words what a node does. */
export function detailOf(node: GraphNode): string {
  switch (node.kind) {
    case "task":
      return node.type;
    case "each":
      return `${node.type}, window ${node.window}`;
    case "when":
      return conditionText(node.ref, node.is, node.value);
    case "sleep":
      return node.ms === undefined ? `until ${templateText(node.until!)}` : durationText(node.ms);
    default:
      return `event ${node.event}`;
  }
}

/** The progress of an `each`: 12/20, and how many items have failed. */
export function progressOf({ kind }: GraphNode, status: NodeStatus | undefined): string {
  const counts = status?.counts;
  if (kind !== "each" || counts === undefined) return "";
  const { total, succeeded, failed, cancelled } = counts;
  const done = `${succeeded + failed + cancelled}/${total}`;
  return failed === 0 ? done : `${done}, ${failed} failed`;
}

function conditionText(ref: TemplateData, is: string, value: unknown): string {
  const what = templateText(ref);
  if (is === "truthy") return what;
  return value === undefined ? `${what} ${is}` : `${what} ${is} ${JSON.stringify(value)}`;
}

function templateText(template: TemplateData): string {
  const { parts, refs } = partsOf(template, () => {
    throw new TypeError("a graph that was read has no bad references");
  });
  return parts.map((part, i) => part + (i < refs.length ? pathText(refs[i]!) : "")).join("");
}

const UNITS = [
  ["d", 86_400_000],
  ["h", 3_600_000],
  ["min", 60_000],
  ["s", 1_000],
] as const;

function durationText(ms: number): string {
  const [unit, size] = UNITS.find(([, length]) => ms >= length && ms % length === 0) ?? ["ms", 1];
  return `${ms / size} ${unit}`;
}
