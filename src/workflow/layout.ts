import { drawnEdges, type DrawnEdge } from "./arrows.js";
import type { GraphNode } from "./graph.js";
import { levelsOf } from "./order.js";

/*
 * Positions the nodes of a picture in columns by their level, so that every arrow goes to the right. An arrow that
 * passes columns has a spot of its own in each of them, so that it never crosses a node. Spots in a column are ordered
 * by the mean height of the spots they are connected to, in a few sweeps back and forth; then heights are moved towards
 * those means as far as the neighbors in the column allow.
 */

/** A node, or the place where an arrow passes a column. */
interface Spot {
  readonly name: string | null;
  readonly level: number;
  y: number;
  readonly before: Spot[];
  readonly behind: Spot[];
}

export interface Route extends DrawnEdge {
  /** The heights of the arrow, from the column of its first node to that of its last. */
  readonly heights: readonly { readonly level: number; readonly y: number }[];
}

export interface Layout {
  /** The level and the height of each node; heights are in rows, starting at 0. */
  readonly places: ReadonlyMap<string, { readonly level: number; readonly y: number }>;
  readonly routes: readonly Route[];
  readonly levels: number;
  readonly rows: number;
}

const SWEEPS = 8;
// The share of a row that a passing arrow needs.
const PASS_ROWS = 0.4;

/** Finds a position for every node and a route for every arrow. */
export function layOut(nodes: readonly GraphNode[]): Layout {
  const levels = levelsOf(nodes);
  const spots = new Map<string, Spot>();
  const columns: Spot[][] = [];
  const put = (name: string | null, level: number): Spot => {
    const spot: Spot = { name, level, y: 0, before: [], behind: [] };
    (columns[level] ??= []).push(spot);
    return spot;
  };
  for (const node of nodes.toSorted((a, b) => levels.get(a.name)! - levels.get(b.name)!)) {
    spots.set(node.name, put(node.name, levels.get(node.name)!));
  }
  const ways = drawnEdges(nodes).map((edge) => ({
    edge,
    way: wayOf(spots.get(edge.from)!, spots.get(edge.to)!, put),
  }));
  arrange(columns);
  const rows = closeUp(columns.flat());
  return {
    places: new Map([...spots].map(([name, { level, y }]) => [name, { level, y }])),
    routes: ways.map(({ edge, way }) => ({
      ...edge,
      heights: way.map(({ level, y }) => ({ level, y })),
    })),
    levels: columns.length,
    rows,
  };
}

/** Returns the spots of an arrow, with one in each column that it passes. */
function wayOf(from: Spot, to: Spot, put: (name: null, level: number) => Spot): Spot[] {
  const way = [from];
  for (let level = from.level + 1; level < to.level; level++) way.push(put(null, level));
  way.push(to);
  for (let i = 1; i < way.length; i++) {
    way[i - 1]!.behind.push(way[i]!);
    way[i]!.before.push(way[i - 1]!);
  }
  return way;
}

function arrange(columns: readonly Spot[][]): void {
  for (const column of columns) settle(column, new Map());
  for (let sweep = 0; sweep < SWEEPS; sweep++) {
    const toRight = sweep % 2 === 0;
    for (const column of toRight ? columns : columns.toReversed()) {
      const wanted = new Map(column.map((spot) => [spot, middle(toRight ? spot.before : spot.behind) ?? spot.y]));
      column.sort((a, b) => wanted.get(a)! - wanted.get(b)!);
      settle(column, wanted);
    }
  }
}

/** Positions a column, in its order, as close to the wanted heights as the spacing allows. */
function settle(column: readonly Spot[], wanted: ReadonlyMap<Spot, number>): void {
  let low = Number.NEGATIVE_INFINITY;
  let off = 0;
  column.forEach((spot, i) => {
    const want = wanted.get(spot) ?? i;
    const gap = i === 0 ? 0 : room(spot, column[i - 1]!);
    spot.y = Math.max(want, low + gap);
    low = spot.y;
    off += spot.y - want;
  });
  // Spreads the total displacement over all spots, so that the column stays centered on its neighbors.
  for (const spot of column) spot.y -= off / column.length;
}

/** Moves everything up to 0 and closes gaps of a whole row. Returns the number of rows. */
function closeUp(spots: readonly Spot[]): number {
  let last = Number.POSITIVE_INFINITY;
  let up = 0;
  let bottom = 0;
  for (const spot of spots.toSorted((a, b) => a.y - b.y)) {
    if (last === Number.POSITIVE_INFINITY) up = spot.y;
    else up += Math.max(0, spot.y - last - 1);
    last = spot.y;
    spot.y -= up;
    bottom = spot.y;
  }
  return bottom + 1;
}

function room(a: Spot, b: Spot): number {
  if (a.name !== null && b.name !== null) return 1;
  return a.name === null && b.name === null ? PASS_ROWS : (1 + PASS_ROWS) / 2;
}

function middle(spots: readonly Spot[]): number | null {
  if (spots.length === 0) return null;
  return spots.reduce((sum, spot) => sum + spot.y, 0) / spots.length;
}
