import { encodeInput } from "../core/json.js";
import { checkName } from "../core/name.js";
import { quote } from "../core/quote.js";
import { inPlace, invalidWorkflow } from "./fault.js";
import { GRAPH_BYTES_MAX, GRAPH_VERSION, NODES_MAX } from "./graph.js";
import type { Graph, GraphNode, Json, TemplateData } from "./graph.js";
import { checkLinks, linked } from "./links.js";
import { readNode, type Data } from "./node.js";

const KEYS = ["version", "name", "nodes", "result"];

/**
 * Converts plain data, from a file or another language, into a graph, or throws `invalid_workflow`. Fills in defaults,
 * renames `with_items` and `concurrency` to items and window, and adds a dependency for every reference.
 */
export function readGraph(data: unknown): Graph {
  const said = plain(data);
  const name = inPlace({ workflow: said["name"] }, () => checkName("workflow", said["name"]));
  const stray = Object.keys(said).find((key) => !KEYS.includes(key));
  if (stray !== undefined) {
    throw invalidWorkflow(`unknown key ${quote(stray)}; a graph has ${KEYS.join(", ")}`, {
      workflow: name,
    });
  }
  if (said["version"] !== GRAPH_VERSION) {
    throw invalidWorkflow(`version must be ${GRAPH_VERSION}, not ${quote(said["version"])}`, {
      workflow: name,
    });
  }
  const nodes = linked(name, nodesOf(name, said["nodes"]));
  const graph: Graph = { version: GRAPH_VERSION, name, nodes, ...resultOf(said) };
  checkLinks(graph);
  return deepFreeze(graph);
}

/** Copies the data through JSON, so that the checked value is the stored one, without getters or proxies in it. */
function plain(data: unknown): Data {
  const workflow = nameIn(data);
  const text = inPlace({ workflow }, () => encodeInput(data, GRAPH_BYTES_MAX));
  const said: unknown = JSON.parse(text);
  if (typeof said === "object" && said !== null && !Array.isArray(said)) return said as Data;
  throw invalidWorkflow("a graph must be an object", { workflow });
}

function nameIn(data: unknown): unknown {
  try {
    return (data as { name?: unknown } | null)?.name;
  } catch {
    return undefined;
  }
}

function nodesOf(workflow: string, list: unknown): GraphNode[] {
  if (!Array.isArray(list)) throw invalidWorkflow("nodes must be a list", { workflow });
  if (list.length === 0) throw invalidWorkflow("it has no nodes", { workflow });
  if (list.length > NODES_MAX) {
    throw invalidWorkflow(`it has ${list.length} nodes, but at most ${NODES_MAX} are allowed`, {
      workflow,
    });
  }
  return list.map((node) => readNode(workflow, node as Json));
}

function resultOf(said: Data): { result?: TemplateData } {
  return said["result"] === undefined ? {} : { result: said["result"] };
}

function deepFreeze<T>(value: T): T {
  if (typeof value !== "object" || value === null) return value;
  Object.values(value).forEach(deepFreeze);
  return Object.freeze(value);
}
