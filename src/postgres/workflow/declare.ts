import type { Queryable } from "../../core/ports.js";
import type { Database } from "../database.js";
import { statement } from "../statement.js";

/** Targets of a template reference that are not nodes: the run's input, the item, its index. */
export const INPUT = 0;
export const ITEM = -1;
export const INDEX = -2;

/**
 * JSON text with placeholders. It renders as parts[0], the value of the first reference, parts[1], and so on to the
 * last part. There is one more part than references. A path that leads nowhere renders as null.
 */
export interface CompiledTemplate {
  /** Literal pieces of JSON text. A template that is one reference has the parts "" and "". */
  readonly parts: readonly string[];
  /**
   * For each reference: the number of a node, or INPUT, ITEM or INDEX (the latter two only in the input of an each).
   */
  readonly nodes: readonly number[];
  /** For each reference: its path, empty for the whole value. Items of a list are named by their index as text. */
  readonly paths: readonly (readonly string[])[];
}

/**
 * A dependency. success: the node succeeded. failure: it failed or was cancelled. end: it is over, whatever its
 * outcome. then, else: the condition of a `when` held, or did not.
 */
export interface CompiledEdge {
  /** The number of the node that must come first. */
  readonly node: number;
  readonly on: "success" | "failure" | "end" | "then" | "else";
  /** For a failure: if this node succeeds, the failure does not fail the run. */
  readonly recovers?: boolean;
}

/** One node, in order of node numbers, which start at 1. At most 500. */
export interface CompiledStep {
  readonly name: string;
  readonly kind: "task" | "each" | "when" | "sleep" | "waitFor";
  /** Lists each dependency once: if two edges name one node, `on` must be the same. */
  readonly after: readonly CompiledEdge[];
  /** task, each. The type must already be declared on this queue. */
  readonly type?: string;
  readonly queue?: string;
  /** task, each: overrides the type's priority. */
  readonly priority?: number;
  readonly attempts?: number;
  /** task, each: the input of the task, or of every item. */
  readonly input?: CompiledTemplate;
  /** each: must render a list. */
  readonly items?: CompiledTemplate;
  /** each: how many items run at once; absent: all. */
  readonly window?: number;
  /** each. Default failFast. */
  readonly onError?: "failFast" | "finish" | "collect";
  /** when: the value to test. One reference, or any template. */
  readonly ref?: CompiledTemplate;
  /**
   * when. truthy: as in JavaScript; equals and differs compare JSON values; above and below compare numbers; exists:
   * not null.
   */
  readonly is?: "truthy" | "equals" | "differs" | "above" | "below" | "exists";
  /** when: JSON value for equals, differs, above, below. */
  readonly value?: unknown;
  /** sleep: one of the two. until renders a time as ISO text or as milliseconds since 1970. */
  readonly ms?: number;
  readonly until?: CompiledTemplate;
  /** waitFor. Its output is the event's payload. Without timeoutMs it waits forever. */
  readonly event?: string;
  readonly timeoutMs?: number;
}

/** A workflow as it is stored. */
export interface CompiledWorkflow {
  readonly name: string;
  /** Digest of all fields below: the same digest means the same graph. */
  readonly digest: string;
  /** The graph as plain data, for people and tools; the engine does not read it. */
  readonly graph: unknown;
  readonly steps: readonly CompiledStep[];
  /**
   * The result of a run; absent: an object with the outputs of the last nodes (those that no node comes after), by
   * name.
   */
  readonly result?: CompiledTemplate;
}

const declareStatement = statement<{ graph: number }>({
  name: "workflow_declare",
  text: "select sluice.workflow_declare($1, $2, $3, $4, $5) as graph",
  params: ["text", "text", "json", "json", "json"],
  columns: ["graph"],
});

/** Stores a workflow unless it is already stored. Returns the number of its graph, by which runs are started. */
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
