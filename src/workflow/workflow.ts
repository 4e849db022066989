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

/** Options of a workflow. */
export interface WorkflowOptions<In extends Schema> {
  /** The schema of the input; without one, a run takes no input. */
  readonly input?: In;
}

/**
 * A workflow: its graph as plain data, and the parts that exist only in code. Input is the type that a run accepts,
 * Output the type of its result.
 */
export interface Workflow<Input = unknown, Output = unknown> {
  readonly name: string;
  readonly graph: Graph;
  /** The same for equal graphs. */
  readonly digest: string;
  readonly input: Schema<Input, unknown>;
  /** For types only: a result is rendered from stored values. */
  readonly output: Schema<unknown, Output>;
  /** The tasks that it calls. */
  readonly contracts: readonly TaskTerms[];
  /** The schemas of the events that it waits for, if it declares any. */
  readonly events: ReadonlyMap<string, Schema>;
}

/**
 * The type of a run's result, from the definition's return value; without one, the outputs of its last nodes, by name.
 */
type ResultOf<R> = [R] extends [void] ? { readonly [node: string]: unknown } : Rendered<R>;

/**
 * Defines a workflow. The callback runs once, immediately, and writes nodes; it works with references to values that
 * will exist in a run. It returns the result of a run: a reference, or a template of references.
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
    output: type<unknown>() as Schema<unknown, ResultOf<R>>,
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
