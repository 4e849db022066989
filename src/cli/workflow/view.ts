import type { RunState } from "../../postgres/workflow/inspect.js";
import { partOver, type RunNode, type RunStatus } from "../../runs/status.js";
import type { NodeState } from "../../workflow/picture.js";
import { bold, cyan, dim, green, magenta, red, yellow } from "../colors.js";

const BAR_LENGTH = 20;
const NAME_LENGTH_MAX = 24;
const MESSAGE_LENGTH_MAX = 200;

type Paint = (text: string) => string;

const MARKS: Readonly<Record<NodeState, readonly [string, Paint]>> = {
  pending: ["·", dim],
  held: ["‖", magenta],
  placing: ["●", cyan],
  running: ["●", cyan],
  succeeded: ["✓", green],
  failed: ["✗", red],
  cancelled: ["■", yellow],
  skipped: ["-", dim],
};

const PAINTS: Readonly<Record<RunState, Paint>> = {
  running: cyan,
  paused: magenta,
  cancelling: yellow,
  succeeded: green,
  failed: red,
  cancelled: yellow,
};

/** Widths of the columns. */
interface Widths {
  readonly name: number;
  readonly kind: number;
}

/** A run for people: a summary line, then one line per node, or some of the nodes and a line about the rest. */
export function viewOf(status: RunStatus, linesMax = Infinity): string[] {
  const { nodes } = status;
  const shown = nodes.length < linesMax ? nodes : mostTelling(nodes, Math.max(0, linesMax - 2));
  const widest = (of: (node: RunNode) => string): number =>
    Math.max(0, ...shown.map((node) => clipped(of(node)).length));
  const widths = { name: widest(({ name }) => name), kind: widest(kindOf) };
  const rest = nodes.filter((node) => !shown.includes(node));
  return [
    headOf(status),
    ...shown.map((node) => lineOf(node, widths)),
    ...(rest.length === 0 ? [] : [dim(restOf(rest))]),
  ];
}

// Order of interest: failed, then running, then pending, then finished.
const TELLING: readonly NodeState[] = [
  "failed",
  "running",
  "placing",
  "cancelled",
  "held",
  "pending",
  "succeeded",
  "skipped",
];

/** The `count` most interesting nodes, in their own order. */
function mostTelling(nodes: readonly RunNode[], count: number): readonly RunNode[] {
  const rank = ({ state }: RunNode): number => TELLING.indexOf(state);
  const chosen = new Set(nodes.toSorted((a, b) => rank(a) - rank(b)).slice(0, count));
  return nodes.filter((node) => chosen.has(node));
}

function restOf(nodes: readonly RunNode[]): string {
  const counts = TELLING.map((of) => [nodes.filter(({ state }) => state === of).length, of]);
  const told = counts.filter(([count]) => count !== 0).map((pair) => pair.join(" "));
  return `  ... and ${nodes.length} more: ${told.join(", ")}`;
}

export function headOf({ id, workflow, state, progress, reason }: RunStatus): string {
  const why = reason === null ? "" : `: ${reason}`;
  const part = `${Math.floor(progress * 100)} %`;
  return `run ${id} of ${bold(workflow)}: ${PAINTS[state](state)}${why}, ${part}`;
}

export function lineOf(node: RunNode, widths: Widths = { name: 0, kind: 0 }): string {
  const [mark, paint] = MARKS[node.state];
  const name = clipped(node.name).padEnd(widths.name);
  const kind = clipped(kindOf(node)).padEnd(widths.kind);
  const words = node.kind === "each" ? eachWords(node, paint) : paint(wordOf(node));
  const took = tookOf(node);
  const over = `${took === "" ? "" : dim(`, ${took}`)}${whyOf(node)}`;
  return `  ${paint(mark)} ${name}  ${dim(kind)}  ${words}${over}`;
}

function whyOf({ error, unserved, lastError }: RunNode): string {
  if (unserved) return yellow(", no worker serves it");
  if (lastError !== null) return yellow(`, retrying after: ${oneLine(lastError.message)}`);
  return error === null ? "" : `: ${oneLine(error.message)}`;
}

// oxlint-disable-next-line no-control-regex -- a message may hold what a terminal would obey
const BREAKS = /[\s\u0000-\u001f\u007f-\u009f]+/g;

/** Text from others, cleaned to fit into one line. */
export function oneLine(text: string): string {
  const line = text.replaceAll(BREAKS, " ").trim();
  return line.length <= MESSAGE_LENGTH_MAX ? line : `${line.slice(0, MESSAGE_LENGTH_MAX - 1)}…`;
}

function kindOf({ type, kind }: RunNode): string {
  return type ?? kind;
}

function wordOf({ kind, state, event, until }: RunNode): string {
  if (state !== "running") return state;
  const time = until === null ? "" : ` until ${until.toISOString()}`;
  if (kind === "waitFor") return `waits for ${event ?? "its event"}${time}`;
  return kind === "sleep" ? `sleeps${time}` : state;
}

/** Progress of an each, as a bar and in numbers. */
function eachWords(node: RunNode, paint: Paint): string {
  const { total, succeeded, failed, cancelled } = node.counts;
  if (total === 0) return paint(node.state);
  const full = Math.floor(partOver(node) * BAR_LENGTH);
  const bar = paint("█".repeat(full)) + dim("░".repeat(BAR_LENGTH - full));
  const parts = [
    `${succeeded + failed + cancelled}/${total}`,
    ...(failed > 0 ? [red(`${failed} failed`)] : []),
    ...(cancelled > 0 ? [yellow(`${cancelled} cancelled`)] : []),
    node.state === "running" ? runningOf(node) : paint(node.state),
  ];
  return `${bar} ${parts.join(", ")}`;
}

function runningOf({ started, waiting, window }: RunNode): string {
  if (started === null) return "running";
  const at = window === null ? `${started} started` : `${started} of ${window} started`;
  return waiting ? `${at}, ${waiting} waiting` : at;
}

/** Duration of a finished node. Omitted while it runs, because its times come from the database's clock. */
function tookOf({ startedAt, finishedAt }: RunNode): string {
  if (startedAt === null || finishedAt === null) return "";
  const ms = finishedAt.getTime() - startedAt.getTime();
  if (ms < 1_000) return `${Math.max(0, ms)} ms`;
  const seconds = Math.round(ms / 1_000);
  return seconds < 100 ? `${(ms / 1_000).toFixed(1)} s` : `${Math.round(seconds / 60)} min`;
}

function clipped(name: string): string {
  return name.length <= NAME_LENGTH_MAX ? name : `${name.slice(0, NAME_LENGTH_MAX - 1)}…`;
}
