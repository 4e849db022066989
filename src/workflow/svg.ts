import type { Graph, GraphNode } from "./graph.js";
import { layOut, type Layout, type Route } from "./layout.js";
import { COLOURS, detailOf, EDGE_WORDS, progressOf } from "./picture.js";
import type { GraphStatus, NodeStatus } from "./picture.js";

const BOX = { width: 176, height: 56 };
const COLUMN = BOX.width + 64;
const ROW = BOX.height + 32;
const MARGIN = 24;
const NAME_LENGTH_MAX = 20;
const DETAIL_LENGTH_MAX = 27;
const LINE = "#8c959f";
const FAILURE_LINE = "#cf222e";

/**
 * Returns the graph as an SVG picture. With a status, each node has the color of its state, and an `each` shows its
 * progress.
 */
export function graphToSvg(graph: Graph, status: GraphStatus = {}): string {
  const layout = layOut(graph.nodes);
  const width = 2 * MARGIN + layout.levels * COLUMN - (COLUMN - BOX.width);
  const height = Math.round(2 * MARGIN + layout.rows * ROW - (ROW - BOX.height));
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" viewBox="0 0 ${width} ${height}" role="img" font-family="system-ui, sans-serif" font-size="13">`,
    `<title>${escaped(graph.name)}</title>`,
    `<defs>${arrow("arrow", LINE)}${arrow("failure", FAILURE_LINE)}</defs>`,
    `<rect width="${width}" height="${height}" fill="#ffffff"/>`,
    ...layout.routes.map(drawRoute),
    ...graph.nodes.map((node) => drawNode(node, layout, ofNode(status, node))),
    ...graph.nodes.flatMap(({ name }) => drawWords(name, layout.routes)),
    "</svg>",
    "",
  ].join("\n");
}

function ofNode(status: GraphStatus, { name }: GraphNode): NodeStatus | undefined {
  return Object.hasOwn(status, name) ? status[name] : undefined;
}

function arrow(id: string, colour: string): string {
  return `<marker id="${id}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="${colour}"/></marker>`;
}

interface Point {
  readonly x: number;
  readonly y: number;
}

/** Returns the upper left corner of a position. */
function corner({ level, y }: { readonly level: number; readonly y: number }): Point {
  return { x: MARGIN + level * COLUMN, y: MARGIN + y * ROW };
}

/**
 * Returns points from the right side of the first box to the left side of the last one, straight through passed
 * columns.
 */
function pointsOf({ heights }: Route): Point[] {
  return heights.flatMap((height, i) => {
    const { x, y } = corner(height);
    const middle = y + BOX.height / 2;
    const left = { x, y: middle };
    const right = { x: x + BOX.width, y: middle };
    if (i === 0) return [right];
    return i === heights.length - 1 ? [left] : [left, right];
  });
}

function drawRoute(route: Route): string {
  const [first, ...rest] = pointsOf(route);
  let at = first!;
  let path = `M${at.x} ${round(at.y)}`;
  for (const point of rest) {
    const bend = (at.x + point.x) / 2;
    path += `C${bend} ${round(at.y)} ${bend} ${round(point.y)} ${point.x} ${round(point.y)}`;
    at = point;
  }
  const failure = route.on === "failure";
  const dashes = failure || route.on === "end" ? ' stroke-dasharray="5 4"' : "";
  return `<path d="${path}" fill="none" stroke="${failure ? FAILURE_LINE : LINE}" stroke-width="1.5"${dashes} marker-end="url(#${failure ? "failure" : "arrow"})"/>`;
}

/** Draws the labels of the edges to a node just before it, where arrows are apart. */
function drawWords(to: string, routes: readonly Route[]): string[] {
  const worded = routes.filter((route) => route.to === to && EDGE_WORDS.has(route.on));
  const [first] = worded;
  if (first === undefined) return [];
  const { x, y } = pointsOf(first).at(-1)!;
  const words = [...new Set(worded.map((route) => EDGE_WORDS.get(route.on)))].join(", ");
  const colour = first.on === "failure" ? FAILURE_LINE : "#57606a";
  return [
    `<text x="${x - 10}" y="${round(y - 6)}" text-anchor="end" font-size="11" fill="${colour}" stroke="#ffffff" stroke-width="3" paint-order="stroke">${words}</text>`,
  ];
}

function drawNode(node: GraphNode, layout: Layout, status: NodeStatus | undefined): string {
  const { x, y } = corner(layout.places.get(node.name)!);
  const state = status?.state ?? "none";
  const [fill, stroke, colour] = COLOURS[state];
  const dashes = state === "skipped" ? ' stroke-dasharray="4 3"' : "";
  const look = `fill="${fill}" stroke="${stroke}" stroke-width="1.5"${dashes}`;
  const progress = progressOf(node, status);
  const detail = progress === "" ? detailOf(node) : progress;
  const hover = [node.name, detailOf(node), ...(status === undefined ? [] : [state]), progress];
  return [
    `<g transform="translate(${x} ${round(y)})" fill="${colour}">`,
    `<title>${escaped(hover.filter((line) => line !== "").join(", "))}</title>`,
    outline(node, look),
    ...text(node.name, { y: 25, max: NAME_LENGTH_MAX, more: ' font-weight="600"' }),
    ...text(detail, { y: 42, max: DETAIL_LENGTH_MAX, more: ' font-size="11"' }),
    ...bar(node, status, stroke),
    "</g>",
  ].join("");
}

/** The shape shows the kind: a stack for an `each`, a hexagon for a condition, round ends for nodes that only wait. */
function outline({ kind }: GraphNode, look: string): string {
  const { width, height } = BOX;
  const box = (radius: number, off = 0): string =>
    `<rect x="${off}" y="${-off}" width="${width}" height="${height}" rx="${radius}" ${look}/>`;
  if (kind === "task") return box(6);
  if (kind === "each") return box(6, 6) + box(6, 3) + box(6);
  if (kind !== "when") return box(height / 2);
  const edge = 16;
  return `<path d="M${edge} 0H${width - edge}L${width} ${height / 2}L${width - edge} ${height}H${edge}L0 ${height / 2}z" ${look}/>`;
}

interface TextOptions {
  readonly y: number;
  readonly max: number;
  readonly more: string;
}

function text(said: string, { y, max, more }: TextOptions): string[] {
  const letters = Array.from(said);
  const shown = letters.length <= max ? said : `${letters.slice(0, max - 1).join("")}…`;
  return [`<text x="${BOX.width / 2}" y="${y}" text-anchor="middle"${more}>${escaped(shown)}</text>`];
}

/** Draws the progress of an `each`. */
function bar({ kind }: GraphNode, status: NodeStatus | undefined, colour: string): string[] {
  const counts = status?.counts;
  if (kind !== "each" || counts === undefined || counts.total === 0) return [];
  const { total, succeeded, failed, cancelled } = counts;
  const whole = BOX.width - 20;
  const good = Math.round((whole * succeeded) / total);
  const bad = Math.round((whole * Math.min(total, succeeded + failed + cancelled)) / total) - good;
  const part = (x: number, width: number, fill: string): string =>
    width <= 0 ? "" : `<rect x="${10 + x}" y="48" width="${width}" height="4" fill="${fill}"/>`;
  const [, green] = COLOURS.succeeded;
  return [part(0, whole, `${colour}33`), part(0, good, green), part(good, bad, FAILURE_LINE)];
}

function round(y: number): number {
  return Math.round(y * 10) / 10;
}

/** Names cannot contain control characters, but the values that a condition compares with can. */
function escaped(said: string): string {
  const visible = said.replaceAll(/\p{Cc}/gu, "\ufffd");
  return visible.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;").replaceAll('"', "&quot;");
}
