import { checkName } from "../core/name.js";
import { checkFunction, checkOptions } from "../core/option.js";
import { isSchema, noInput, type, type InputOf, type OutputOf, type Schema } from "../core/schema.js";
import type { TaskTerms } from "../core/terms.js";
import { digestOf } from "./digest.js";
import { Draft } from "./draft.js";
import { inPlace } from "./fault.js";
import { GRAPH_VERSION, type Graph } from "./graph.js";
import { readGraph } from "./read.js";
import type { Ref } from "./ref.js";
import { resultData } from "./result.js";
import type { Scope } from "./scope.js";
import type { Stored } from "./stored.js";
import type { Rendered } from "./template.js";
import { Writer } from "./writer.js";

/** What can be said about a workflow besides its nodes. */
export interface WorkflowOptions<In extends Schema> {
  /** The schema of the input; without one a run takes none. */
  readonly input?: In;
}

/** A workflow: plain data, and what only code has. Input is what a run takes, Output what it results in. */
export interface Workflow<Input = unknown, Output = unknown> {
  readonly name: string;
  readonly graph: Graph;
  /** The same for graphs that say the same. */
  readonly digest: string;
  readonly input: Schema<Input, unknown>;
  /** For types only: a result is rendered from what was stored. */
  readonly output: Schema<unknown, Output>;
  /** The tasks that it calls. */
  readonly contracts: readonly TaskTerms[];
  /** The schemas of the events that it waits for, where it has said one. */
  readonly events: ReadonlyMap<string, Schema>;
}

/** What a run results in, by what the definition returned: without anything the outputs of its last nodes, by name. */
type ResultOf<R> = [R] extends [void] ? { readonly [node: string]: unknown } : Rendered<R>;

/**
 * Defines a workflow. The callback runs once, now, and writes nodes; what it handles are references to
 * values that a run will have. What it returns, a reference or a template of references, is what a run
 * results in.
 */
export function workflow<R, In extends Schema<unknown, unknown> = Schema<undefined>>(
  name: string,
  options: WorkflowOptions<In>,
  write: (w: Scope, input: Ref<Stored<OutputOf<In>>>) => R,
): Workflow<InputOf<In>, ResultOf<R>> {
  const { draft, input } = begin(name, options, write);
  const writer = new Writer(draft);
  const run = write as (w: unknown, input: unknown) => unknown;
  const out = draft.writing(writer, () => run(writer, draft.ref("input")));
  const graph = readGraph({
    version: GRAPH_VERSION,
    name,
    nodes: draft.nodes.map(({ name: node, kind, said, part, after }) => ({
      name: node,
      kind,
      ...said,
      after: after.map((edge) => (edge.on === "success" ? edge.node : edge)),
      ...(part.length === 0 ? {} : { part }),
    })),
    ...(out === undefined ? {} : { result: resultData(draft, out) }),
  });
  return Object.freeze({
    name,
    graph,
    digest: digestOf(graph),
    input,
    output: type<ResultOf<R>>(),
    contracts: Object.freeze([...draft.contracts]),
    events: draft.events,
  });
}

function begin<In extends Schema<unknown, unknown>>(
  name: string,
  options: WorkflowOptions<In>,
  write: unknown,
): { draft: Draft; input: Schema<InputOf<In>, unknown> } {
  return inPlace({ workflow: name }, () => {
    const draft = new Draft(checkName("workflow", name));
    checkOptions("workflow", options, ["input"]);
    checkFunction("the definition", write);
    const input: unknown = options.input ?? noInput;
    if (!isSchema(input)) throw draft.fault("input must be a Standard Schema or type<T>()");
    return { draft, input };
  });
}
