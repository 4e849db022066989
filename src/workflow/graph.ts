/*
 * A workflow as plain data: what is stored, drawn, and written by tools and other languages. `readGraph`
 * makes one of anything that was parsed from JSON; `workflow()` makes one of code. Both end here, in one
 * form: every dependency is written down, and no name has a second spelling.
 */

/** The version of the form; a reader refuses others. */
export const GRAPH_VERSION = 1;
/** Enough for what people draw; work that comes in numbers belongs into an each. */
export const NODES_MAX = 500;
/** How large the text of a graph may be. */
export const GRAPH_BYTES_MAX = 1_048_576;
/** Where a reference may begin besides a node; no node has such a name. */
export const ROOTS = ["input", "item", "index"] as const;

/** Anything that JSON can say. */
export type Json = string | number | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/**
 * JSON in which `{"$ref": [root, ...path]}` stands for a value of the run: of its input, of a node's output
 * (of one that failed there is only `error`), and in the input of an each of the item and its index. `{"$literal": value}` stands for the value itself,
 * whatever is in it.
 */
export type TemplateData = Json;

/** On what a node waits for another: see `Edge`. */
export type On = "success" | "failure" | "end" | "then" | "else";

/**
 * A dependency on another node; a plain name means success.
 *
 * success: it must succeed; if it was left out because a branch was not taken, its values are null, and
 * at least one other must succeed. end: it must be over, whatever it came to. The others are guards,
 * without which the node is skipped: failure (it has failed), then and else (the condition of a when).
 */
export type Edge = string | GuardedEdge;

interface GuardedEdge {
  readonly node: string;
  readonly on: On;
  /** Of a failure: once this node succeeds, that failure does not fail the run. */
  readonly recover?: boolean;
}

/** What becomes of an each when an item has failed for good. */
export type OnError = "failFast" | "finish" | "collect";
/** What a when asks of a value. */
type Is = "truthy" | "equals" | "differs" | "above" | "below" | "exists";

interface NodeBase {
  readonly name: string;
  readonly after: readonly Edge[];
  /** The sequences and branches that it was written in, outermost first; only for pictures. */
  readonly part?: readonly string[];
}

interface Work {
  readonly type: string;
  readonly queue: string;
  readonly input: TemplateData;
  /** Instead of the type's own. */
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
  /** Either so long, or until a time: ISO text, UTC unless it names an offset, or ms since 1970. */
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
  /** What a run results in; without it the outputs of the nodes that none comes after, by name. */
  readonly result?: TemplateData;
}

/** A dependency in full. */
export function edgeOf(edge: Edge): GuardedEdge {
  return typeof edge === "string" ? { node: edge, on: "success" } : edge;
}

/** The templates of a node: where it refers to others. */
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
