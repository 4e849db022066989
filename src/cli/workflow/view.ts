import { partOver, type RunNode, type RunStatus } from "../../client/run-status.js";
import type { RunState } from "../../postgres/workflow/inspect.js";
import type { NodeState } from "../../workflow/picture.js";
import { bold, cyan, dim, green, magenta, red, yellow } from "../colors.js";

const BAR_LENGTH = 20;
const NAME_LENGTH_MAX = 24;

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

/** How wide the columns are. */
interface Widths {
  readonly name: number;
  readonly kind: number;
}

/** A run for people: a line about the whole, then one for each node. */
export function viewOf(status: RunStatus): string[] {
  const widest = (of: (node: RunNode) => string): number =>
    Math.max(0, ...status.nodes.map((node) => clipped(of(node)).length));
  const widths = { name: widest(({ name }) => name), kind: widest(kindOf) };
  return [headOf(status), ...status.nodes.map((node) => lineOf(node, widths))];
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
  return `  ${paint(mark)} ${name}  ${dim(kind)}  ${words}${took === "" ? "" : dim(`, ${took}`)}`;
}

function kindOf({ type, kind }: RunNode): string {
  return type ?? kind;
}

function wordOf({ kind, state }: RunNode): string {
  if (state !== "running") return state;
  return kind === "waitFor" ? "waits for its event" : kind === "sleep" ? "sleeps" : state;
}

/** How far an each is, as a bar and in numbers. */
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

function runningOf({ started, window }: RunNode): string {
  if (started === null) return "running";
  return window === null ? `${started} at once` : `${started} of ${window} at once`;
}

/** Of what is over. The clock of what still runs is the database's. */
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
