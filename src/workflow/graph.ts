/*
 * A workflow as plain data: the form that is stored, drawn, and written by tools and other languages. `readGraph`
 * creates it from parsed JSON, `workflow()` from code. Both produce this one form: every dependency is explicit, and no
 * field has a second spelling.
 */

/** The version of the graph format; readers refuse other versions. */
export const GRAPH_VERSION = 1;
/** Enough for graphs that people draw; put large numbers of tasks into an `each`. */
export const NODES_MAX = 500;
/** The maximum size of a graph's JSON text. */
export const GRAPH_BYTES_MAX = 1_048_576;
/** Roots of references besides node names; no node can have these names. */
export const ROOTS = ["input", "item", "index"] as const;

/** Any JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/**
 * JSON in which `{"$ref": [root, ...path]}` stands for a value of the run: from its input, from a node's output (a
 * failed node has only `error`), and, in the input of an `each`, from the item and its index. `{"$literal": value}`
 * stands for the value itself, regardless of its contents.
 */
export type TemplateData = Json;

/** The event of another node that a dependency waits for: see `Edge`. */
export type On = "success" | "failure" | "end" | "then" | "else";

/**
 * A dependency on another node; a plain name means success.
 *
 * - success: the node must succeed. If it was skipped because a branch was not taken, its values are null, and at least
 *   one other dependency must succeed.
 * - end: the node must have ended, in any state.
 * - failure (the node has failed), then and else (the condition of a `when`) are guards: if one does not hold, the
 *   dependent node is skipped.
 */
export type Edge = string | GuardedEdge;

interface GuardedEdge {
  readonly node: string;
  readonly on: On;
  /** For `failure`: once this node succeeds, that failure does not fail the run. */
  readonly recover?: boolean;
}

/** What happens to an `each` when an item has finally failed. */
export type OnError = "failFast" | "finish" | "collect";
/** The test that a `when` applies to a value. */
type Is = "truthy" | "equals" | "differs" | "above" | "below" | "exists";

interface NodeBase {
  readonly name: string;
  readonly after: readonly Edge[];
  /** The sequences and branches that contain the node, outermost first; only used for pictures. */
  readonly part?: readonly string[];
}

interface Work {
  readonly type: string;
  readonly queue: string;
  readonly input: TemplateData;
  /** Overrides the type's own value. */
  readonly priority?: number;
  readonly attempts?: number;
}

interface TaskData extends NodeBase, Work {
  readonly kind: "task";
}

interface EachData extends NodeBase, Work {
  readonly kind: "each";
  readonly items: TemplateData;
  readonly window: number;
  readonly onError: OnError;
}

export interface WhenData extends NodeBase {
  readonly kind: "when";
  readonly ref: TemplateData;
  readonly is: Is;
  readonly value?: Json;
}

interface SleepData extends NodeBase {
  readonly kind: "sleep";
  /** Either a duration in ms, or `until` a time: ISO text, in UTC unless it has an offset, or ms since 1970. */
  readonly ms?: number;
  readonly until?: TemplateData;
}

interface WaitForData extends NodeBase {
  readonly kind: "waitFor";
  readonly event: string;
  readonly timeoutMs?: number;
}

export type GraphNode = TaskData | EachData | WhenData | SleepData | WaitForData;

/** A workflow as plain data. */
export interface Graph {
  readonly version: typeof GRAPH_VERSION;
  readonly name: string;
  readonly nodes: readonly GraphNode[];
  /** The result of a run; by default the outputs of the nodes that no other node depends on, by name. */
  readonly result?: TemplateData;
}

/** Returns a dependency in its full form. */
export function edgeOf(edge: Edge): GuardedEdge {
  return typeof edge === "string" ? { node: edge, on: "success" } : edge;
}

/** Returns the templates of a node, which contain its references. */
export function templatesOf(node: GraphNode): readonly TemplateData[] {
  switch (node.kind) {
    case "task":
      return [node.input];
    case "each":
      return [node.items, node.input];
    case "when":
      return [node.ref];
    case "sleep":
      return node.until === undefined ? [] : [node.until];
    default:
      return [];
  }
}
