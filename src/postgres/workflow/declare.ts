import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** What a reference of a template points at when it is no node: the run's input, the item, its index. */
export const INPUT = 0;
export const ITEM = -1;
export const INDEX = -2;

/**
 * JSON text with holes: rendered it is parts[0], the value of the first reference, parts[1], and so on to
 * the last part. There is one part more than references. A path that leads nowhere renders as null.
 */
export interface CompiledTemplate {
  /** Literal pieces of JSON text. A template that is one reference has the parts "" and "". */
  readonly parts: readonly string[];
  /** Of each reference: the number of a node, or INPUT, ITEM or INDEX (the latter two in the input of an each). */
  readonly nodes: readonly number[];
  /** Of each reference: its path, empty for the whole. Members of lists by their index as text. */
  readonly paths: readonly (readonly string[])[];
}

/**
 * A dependency. success: it succeeded. failure: it failed or was cancelled. end: it is over, whatever it came
 * to. then, else: of a `when`, that its condition held, or did not.
 */
export interface CompiledEdge {
  /** The number of the node that this one comes after. */
  readonly node: number;
  readonly on: "success" | "failure" | "end" | "then" | "else";
  /** Of a failure: if this node succeeds, the failure does not fail the run. */
  readonly recovers?: boolean;
}

/** One node, in the order of their numbers: the first is number 1. At most 500. */
export interface CompiledStep {
  readonly name: string;
  readonly kind: "task" | "each" | "when" | "sleep" | "waitFor";
  /** Each dependency once: if two edges name one node, `on` must be the same. */
  readonly after: readonly CompiledEdge[];
  /** task, each. The type must have been declared on this queue before. */
  readonly type?: string;
  readonly queue?: string;
  /** task, each: instead of the type's own. */
  readonly priority?: number;
  readonly attempts?: number;
  /** task, each: of a task or of every item. */
  readonly input?: CompiledTemplate;
  /** each: must render a list. */
  readonly items?: CompiledTemplate;
  /** each: how many run at once; absent: all. */
  readonly window?: number;
  /** each. Absent: failFast. */
  readonly onError?: "failFast" | "finish" | "collect";
  /** when: what is looked at. One reference, or any template. */
  readonly ref?: CompiledTemplate;
  /** when. truthy as in JavaScript; equals and differs compare JSON values; above and below numbers; exists: not null. */
  readonly is?: "truthy" | "equals" | "differs" | "above" | "below" | "exists";
  /** when: JSON value for equals, differs, above, below. */
  readonly value?: unknown;
  /** sleep: either of the two. until renders a time as ISO text or as milliseconds since 1970. */
  readonly ms?: number;
  readonly until?: CompiledTemplate;
  /** waitFor. Its output is the event's payload. Without timeoutMs it waits for ever. */
  readonly event?: string;
  readonly timeoutMs?: number;
}

/** A workflow as it is stored. */
export interface CompiledWorkflow {
  readonly name: string;
  /** Of all that follows: the same digest means the same graph. */
  readonly digest: string;
  /** The graph as plain data, for people and tools; the engine does not read it. */
  readonly graph: unknown;
  readonly steps: readonly CompiledStep[];
  /** The result of a run; absent: an object of the outputs of the nodes that none comes after, by name. */
  readonly result?: CompiledTemplate;
}

const declareStatement = statement<{ graph: number }>({
  name: "workflow_declare",
  text: "select sluice.workflow_declare($1, $2, $3, $4, $5) as graph",
  params: ["text", "text", "json", "json", "json"],
  columns: ["graph"],
});

/** Stores a workflow unless it is stored already. Returns the number of its graph, by which runs are started. */
export async function declareWorkflow(
  db: Database,
  { name, digest, graph, steps, result }: CompiledWorkflow,
  tx?: Queryable,
): Promise<number> {
  const values = [
    name,
    digest,
    JSON.stringify(graph),
    JSON.stringify(steps),
    result === undefined ? null : JSON.stringify(result),
  ];
  return (await db.one(declareStatement, values, tx)).graph;
}
