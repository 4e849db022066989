import {
  INDEX,
  INPUT,
  ITEM,
  type CompiledEdge,
  type CompiledStep,
  type CompiledTemplate,
  type CompiledWorkflow,
} from "../postgres/workflow/declare.js";
import { digestOf } from "./digest.js";
import { invalidWorkflow } from "./fault.js";
import { edgeOf, type Graph, type GraphNode, type TemplateData } from "./graph.js";
import { partsOf } from "./parts.js";

/** Returns the form of a graph that the database stores: nodes by number, templates as text with holes. */
export function compileGraph(graph: Graph): CompiledWorkflow {
  const numbers = new Map([
    ["input", INPUT],
    ["item", ITEM],
    ["index", INDEX],
    ...graph.nodes.map((node, i) => [node.name, i + 1] as const),
  ]);
  const numberOf = (name: string): number => numbers.get(name)!;
  const compile = (template: TemplateData): CompiledTemplate => compileTemplate(graph.name, template, numberOf);
  return {
    name: graph.name,
    digest: digestOf(graph),
    graph,
    steps: graph.nodes.map((node) => ({
      ...stepOf(node, compile),
      after: node.after.map((edge) => edgeFor(edge, numberOf)),
    })),
    ...(graph.result === undefined ? {} : { result: compile(graph.result) }),
  };
}

function compileTemplate(
  workflow: string,
  template: TemplateData,
  numberOf: (name: string) => number,
): CompiledTemplate {
  const { parts, refs } = partsOf(template, (why) => {
    throw invalidWorkflow(why, { workflow });
  });
  return {
    parts,
    nodes: refs.map(({ root }) => numberOf(root)),
    paths: refs.map(({ path }) => path),
  };
}

function edgeFor(edge: GraphNode["after"][number], numberOf: (name: string) => number): CompiledEdge {
  const { node, on, recover } = edgeOf(edge);
  return { node: numberOf(node), on, ...(recover === true ? { recovers: true } : {}) };
}

function stepOf(node: GraphNode, compile: (template: TemplateData) => CompiledTemplate): Omit<CompiledStep, "after"> {
  const { after: _after, part: _part, ...said } = node;
  switch (said.kind) {
    case "task":
      return { ...said, input: compile(said.input) };
    case "each":
      return { ...said, input: compile(said.input), items: compile(said.items) };
    case "when":
      return { ...said, ref: compile(said.ref) };
    case "sleep":
      return said.until === undefined
        ? { name: said.name, kind: said.kind, ms: said.ms! }
        : { name: said.name, kind: said.kind, until: compile(said.until) };
    default:
      return said;
  }
}
