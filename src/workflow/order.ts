import { edgeOf, type GraphNode } from "./graph.js";

/**
 * Returns the distance of each node from the start: 0 without dependencies, else one more than the most distant
 * dependency. Nodes in or behind a circular dependency have no level.
 */
export function levelsOf(nodes: readonly GraphNode[]): Map<string, number> {
  const levels = new Map<string, number>();
  const open = new Map(nodes.map((node) => [node.name, new Set(namesBefore(node)).size]));
  const behind = successorsOf(nodes);
  let wave = nodes.filter((node) => open.get(node.name) === 0).map((node) => node.name);
  for (let level = 0; wave.length > 0; level++) {
    const next: string[] = [];
    for (const name of wave) {
      levels.set(name, level);
      for (const successor of behind.get(name) ?? []) {
        const left = open.get(successor)! - 1;
        open.set(successor, left);
        if (left === 0) next.push(successor);
      }
    }
    wave = next;
  }
  return levels;
}

/** Returns one circle of dependencies, from a node back to itself; null if there is none. */
export function cycleIn(nodes: readonly GraphNode[]): string[] | null {
  const levels = levelsOf(nodes);
  const stuck = new Map(nodes.filter((n) => !levels.has(n.name)).map((n) => [n.name, n]));
  const trail: string[] = [];
  // Every stuck node waits for another stuck node, so the walk must return to a node already visited.
  let at = [...stuck.keys()][0];
  while (at !== undefined && !trail.includes(at)) {
    trail.push(at);
    at = namesBefore(stuck.get(at)!).find((name) => stuck.has(name));
  }
  return at === undefined ? null : [...trail.slice(trail.indexOf(at)), at].toReversed();
}

function namesBefore(node: GraphNode): string[] {
  return node.after.map((edge) => edgeOf(edge).node);
}

function successorsOf(nodes: readonly GraphNode[]): Map<string, string[]> {
  const behind = new Map<string, string[]>(nodes.map((node) => [node.name, []]));
  for (const node of nodes) {
    for (const name of new Set(namesBefore(node))) behind.get(name)?.push(node.name);
  }
  return behind;
}
