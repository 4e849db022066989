import { edgeOf, type GraphNode, type On } from "./graph.js";
import { levelsOf } from "./order.js";

/*
 * Decides which arrows of a picture can be omitted. When a node runs, its predecessors and their predecessors have
 * certainly run, so an arrow from an indirect predecessor adds nothing. But a node that a condition skips does not
 * block its successors, so nothing about it is certain: a node that depends on a condition and on its branch also
 * starts without the branch, and needs both arrows.
 */

/** An edge that is drawn. */
export interface DrawnEdge {
  readonly from: string;
  readonly to: string;
  readonly on: On;
}

/** Returns the edges to draw: all except success edges that a longer path already implies. */
export function drawnEdges(nodes: readonly GraphNode[]): DrawnEdge[] {
  const levels = levelsOf(nodes);
  const levelOf = (name: string): number => levels.get(name)!;
  const known = new Map<string, Known>();
  const drawn: DrawnEdge[] = [];
  for (const { name: to, after } of nodes.toSorted((a, b) => levelOf(a.name) - levelOf(b.name))) {
    // Nearest first: the predecessors of a nearer node need no arrow of their own.
    const edges = after.map(edgeOf).toSorted((a, b) => levelOf(b.node) - levelOf(a.node));
    const learnt = learn(edges, known);
    known.set(to, learnt.known);
    for (const { node: from, on } of learnt.added) drawn.push({ from, to, on });
  }
  return drawn;
}

interface EdgeSaid {
  readonly node: string;
  readonly on: On;
}

/** Facts that hold whenever a node runs. */
interface Known {
  /** Nodes that have succeeded. */
  readonly done: ReadonlySet<string>;
  /** Conditions that hold: a branch was taken, a node has failed. */
  readonly met: ReadonlySet<string>;
  /** While these hold, no condition skips the node. */
  readonly asked: ReadonlySet<string>;
}

/**
 * Returns the facts that these edges to a node imply, and the edges that add a new fact. Edges are sorted nearest
 * first.
 */
function learn(edges: readonly EdgeSaid[], known: ReadonlyMap<string, Known>): { known: Known; added: EdgeSaid[] } {
  const [conditional, plain] = [edges.filter(isCondition), edges.filter((e) => !isCondition(e))];
  const own = conditional.map(({ node, on }) => `${on} ${node}`);
  const met = new Set([...own, ...conditional.flatMap(({ node }) => [...known.get(node)!.met])]);
  const done = new Set<string>();
  const added: EdgeSaid[] = [];
  // If one predecessor has certainly ended, a skipped one does not matter.
  let certain = false;
  for (const edge of edges) {
    const said = done.has(edge.node);
    if (!said || edge.on !== "success") added.push(edge);
    const ran = isCondition(edge) || [...known.get(edge.node)!.asked].every((c) => met.has(c));
    certain ||= edge.on === "end" || (edge.on === "success" && ran);
    if (said || !ran || edge.on === "end") continue;
    for (const name of known.get(edge.node)!.done) done.add(name);
    if (edge.on !== "failure") done.add(edge.node);
  }
  const skips = certain ? met : new Set(plain.flatMap(({ node }) => [...known.get(node)!.asked]));
  return { known: { done, met, asked: new Set([...own, ...skips]) }, added };
}

function isCondition({ on }: EdgeSaid): boolean {
  return on === "then" || on === "else" || on === "failure";
}
