import { quote } from "../core/quote.js";
import { invalidWorkflow } from "./fault.js";
import { edgeOf, templatesOf } from "./graph.js";
import type { Edge, Graph, GraphNode, TemplateData } from "./graph.js";
import { cycleIn } from "./order.js";
import { partsOf, type Refer } from "./parts.js";

const EACH_OUTPUTS = ["results", "errors", "counts", "error"];
const SHOWN_MAX = 10;

/** Adds a dependency for each reference: on the node's success, unless `after` already names that node. */
export function linked(workflow: string, nodes: readonly GraphNode[]): GraphNode[] {
  return nodes.map((node) => {
    const named = new Set(node.after.map((edge) => edgeOf(edge).node));
    const roots = templatesOf(node).flatMap((template) =>
      refersIn(template, { workflow, node: node.name }).map(({ root }) => root),
    );
    const more = [...new Set(roots)].filter((root) => !isRoot(root) && !named.has(root));
    return { ...node, after: [...node.after, ...more] };
  });
}

/** Refuses duplicate or unknown names, references that can never have a value, and circular dependencies. */
export function checkLinks(graph: Graph): void {
  const { name: workflow, nodes } = graph;
  const byName = new Map<string, GraphNode>();
  for (const node of nodes) {
    if (byName.has(node.name)) {
      throw invalidWorkflow("another node has the same name", { workflow, node: node.name });
    }
    byName.set(node.name, node);
  }
  for (const node of nodes) {
    checkEdges(workflow, node, byName);
    checkRefers(workflow, node, byName);
  }
  const cycle = cycleIn(nodes);
  if (cycle !== null) {
    const shown = cycle.length <= SHOWN_MAX ? cycle : [...cycle.slice(0, SHOWN_MAX), "…"];
    const way = shown.map((name) => quote(name)).join(" -> ");
    throw invalidWorkflow(`it waits for itself: ${way}`, { workflow, node: cycle[0] });
  }
  checkResult(graph, byName);
}

/** Returns the references of a template. */
function refersIn(
  template: TemplateData,
  place: { readonly workflow: string; readonly node?: string },
): readonly Refer[] {
  return partsOf(template, (why) => {
    throw invalidWorkflow(why, place);
  }).refs;
}

function isRoot(root: string): boolean {
  return root === "input" || root === "item" || root === "index";
}

type ByName = ReadonlyMap<string, GraphNode>;

function checkEdges(workflow: string, node: GraphNode, byName: ByName): void {
  const refuse = (why: string): never => {
    throw invalidWorkflow(why, { workflow, node: node.name });
  };
  const seen = new Set<string>();
  for (const edge of node.after.map((one: Edge) => edgeOf(one))) {
    const before = byName.get(edge.node);
    if (before === undefined) return refuse(`it comes after ${quote(edge.node)}, which does not exist`);
    if (seen.has(edge.node)) refuse(`it comes after ${quote(edge.node)} twice`);
    seen.add(edge.node);
    if ((edge.on === "then" || edge.on === "else") && before.kind !== "when") {
      refuse(`${quote(edge.node)} is not a when, so it has no ${edge.on}`);
    }
  }
}

function checkRefers(workflow: string, node: GraphNode, byName: ByName): void {
  const place = { workflow, node: node.name };
  const item = node.kind === "each" ? node.input : null;
  for (const template of templatesOf(node)) {
    for (const refer of refersIn(template, place)) {
      const why = troubleWith(refer, byName, template === item);
      if (why !== null) throw invalidWorkflow(why, place);
    }
  }
}

function checkResult({ name: workflow, result }: Graph, byName: ByName): void {
  if (result === undefined) return;
  for (const refer of refersIn(result, { workflow })) {
    const why = troubleWith(refer, byName, false);
    if (why !== null) throw invalidWorkflow(`its result: ${why}`, { workflow });
  }
}

/** Returns why a reference can never have a value; null if it can. */
function troubleWith({ root, path }: Refer, byName: ByName, inEach: boolean): string | null {
  if (root === "input") return null;
  if (root === "item" || root === "index") {
    return inEach ? null : `${root} exists only in the input of an each`;
  }
  const node = byName.get(root);
  if (node === undefined) return `it refers to node ${quote(root)}, which does not exist`;
  const [output] = path;
  if ((node.kind === "when" || node.kind === "sleep") && output !== "error") {
    return `it refers to ${quote(root)}, but a ${node.kind} has no output`;
  }
  if (node.kind !== "each" || output === undefined || EACH_OUTPUTS.includes(output)) return null;
  return `it refers to ${quote(output)} of ${quote(root)}; an each has ${EACH_OUTPUTS.join(", ")}`;
}
