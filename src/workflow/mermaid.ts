import { drawnEdges } from "./arrows.js";
import type { Graph, GraphNode } from "./graph.js";
import { COLOURS, detailOf, EDGE_WORDS, progressOf, type GraphStatus } from "./picture.js";

/**
 * Returns the graph as Mermaid text, which many tools can draw. With a status, each node has the color of its state.
 */
export function graphToMermaid(graph: Graph, status: GraphStatus = {}): string {
  const ids = new Map(graph.nodes.map((node, i) => [node.name, `n${i + 1}`]));
  const edges = drawnEdges(graph.nodes).map(({ from, to, on }) => {
    const word = EDGE_WORDS.get(on);
    const line = on === "failure" || on === "end" ? "-.->" : "-->";
    return `  ${ids.get(from)} ${line}${word === undefined ? "" : `|${word}|`} ${ids.get(to)}`;
  });
  return ["flowchart LR", ...nodeLines(graph, ids, status), ...edges, ...classLines(graph, ids, status), ""].join("\n");
}

/** Groups the nodes of a sequence in a frame with its name. */
function nodeLines(graph: Graph, ids: ReadonlyMap<string, string>, status: GraphStatus): string[] {
  const lines: string[] = [];
  let open: readonly string[] = [];
  let frames = 0;
  const move = (part: readonly string[]): void => {
    let same = 0;
    while (same < open.length && same < part.length && open[same] === part[same]) same++;
    for (let depth = open.length; depth > same; depth--) lines.push(`${indent(depth)}end`);
    for (let depth = same; depth < part.length; depth++) {
      lines.push(`${indent(depth + 1)}subgraph s${++frames}["${escaped(part[depth]!)}"]`);
    }
    open = part;
  };
  for (const node of graph.nodes) {
    move(node.part ?? []);
    lines.push(indent(open.length + 1) + ids.get(node.name)! + shape(node, labelOf(node, status)));
  }
  move([]);
  return lines;
}

function indent(depth: number): string {
  return "  ".repeat(depth);
}

function labelOf(node: GraphNode, status: GraphStatus): string {
  const progress = progressOf(node, statusOf(status, node));
  const lines = [node.name, detailOf(node), ...(progress === "" ? [] : [progress])];
  return `"${lines.map(escaped).join("<br/>")}"`;
}

function shape({ kind }: GraphNode, label: string): string {
  switch (kind) {
    case "task":
      return `(${label})`;
    case "each":
      return `[[${label}]]`;
    case "when":
      return `{{${label}}}`;
    default:
      return `([${label}])`;
  }
}

function classLines(graph: Graph, ids: ReadonlyMap<string, string>, status: GraphStatus): string[] {
  const states = [...new Set(graph.nodes.map((node) => statusOf(status, node)?.state ?? "none"))];
  return states.flatMap((state) => {
    const [fill, stroke, color] = COLOURS[state];
    const members = graph.nodes.filter((n) => (statusOf(status, n)?.state ?? "none") === state);
    return [
      `  classDef ${state} fill:${fill},stroke:${stroke},color:${color}`,
      `  class ${members.map((node) => ids.get(node.name)).join(",")} ${state}`,
    ];
  });
}

function statusOf(status: GraphStatus, { name }: GraphNode): GraphStatus[string] | undefined {
  return Object.hasOwn(status, name) ? status[name] : undefined;
}

// Escapes every character that is special in Mermaid or HTML by its code point.
function escaped(text: string): string {
  return text.replaceAll(/["#&'<>\\`[\]{}|;%\p{Cc}]/gu, (c) => `#${c.codePointAt(0)};`);
}
