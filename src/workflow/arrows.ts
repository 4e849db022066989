import { edgeOf, type GraphNode, type On } from "./graph.js";
import { levelsOf } from "./order.js";

/*
 * Which arrows of a picture may be left out. What comes after a node has certainly run: an arrow from what that node
 * comes after would say nothing new. But a node that a condition skips holds nobody up, so of it nothing is certain: what
 * comes after a condition and after its branch begins without the branch too, and needs both arrows.
 */

/** An edge that is drawn. */
export interface DrawnEdge {
  readonly from: string;
  readonly to: string;
  readonly on: On;
}

/** The edges of a picture: all but those on a success that a longer way says already. */
export function drawnEdges(nodes: readonly GraphNode[]): DrawnEdge[] {
  const levels = levelsOf(nodes);
  const levelOf = (name: string): number => levels.get(name)!;
  const known = new Map<string, Known>();
  const drawn: DrawnEdge[] = [];
  for (const { name: to, after } of nodes.toSorted((a, b) => levelOf(a.name) - levelOf(b.name))) {
    // The nearest first: what they have behind them needs no arrow of its own.
    const edges = after.map(edgeOf).toSorted((a, b) => levelOf(b.node) - levelOf(a.node));
    const learnt = learn(edges, known);
    known.set(to, learnt.known);
    for (const { node: from, on } of learnt.news) drawn.push({ from, to, on });
  }
  return drawn;
}

interface EdgeSaid {
  readonly node: string;
  readonly on: On;
}

/** What is known of a node that runs. */
interface Known {
  /** Nodes that have succeeded. */
  readonly done: ReadonlySet<string>;
  /** Conditions that hold: a branch was taken, a node has failed. */
  readonly met: ReadonlySet<string>;
  /** While these hold no condition skips it. */
  readonly asked: ReadonlySet<string>;
}

/** What is known by these edges to a node, the nearest first, and those of them that say something new. */
function learn(edges: readonly EdgeSaid[], known: ReadonlyMap<string, Known>): { known: Known; news: EdgeSaid[] } {
  const [conditional, plain] = [edges.filter(isCondition), edges.filter((e) => !isCondition(e))];
  const own = conditional.map(({ node, on }) => `${on} ${node}`);
  const met = new Set([...own, ...conditional.flatMap(({ node }) => [...known.get(node)!.met])]);
  const done = new Set<string>();
  const news: EdgeSaid[] = [];
  // Beside one that has ended, one that was skipped does not matter.
  let certain = false;
  for (const edge of edges) {
    const said = done.has(edge.node);
    if (!said || edge.on !== "success") news.push(edge);
    const ran = isCondition(edge) || [...known.get(edge.node)!.asked].every((c) => met.has(c));
    certain ||= edge.on === "end" || (edge.on === "success" && ran);
    if (said || !ran || edge.on === "end") continue;
    for (const name of known.get(edge.node)!.done) done.add(name);
    if (edge.on !== "failure") done.add(edge.node);
  }
  const skips = certain ? met : new Set(plain.flatMap(({ node }) => [...known.get(node)!.asked]));
  return { known: { done, met, asked: new Set([...own, ...skips]) }, news };
}

function isCondition({ on }: EdgeSaid): boolean {
  return on === "then" || on === "else" || on === "failure";
}
