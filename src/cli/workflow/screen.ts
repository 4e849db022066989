import type { RunStatus } from "../../runs/status.js";
import { headOf, lineOf, viewOf } from "./view.js";

/** The stream that a view is drawn on, such as process.stdout. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  write(text: string): unknown;
}

/** Shows one status after another. */
type Show = (status: RunStatus) => void;

/** On a terminal, redraws in place; elsewhere, prints a line for each change. */
export function showOn(screen: Screen): Show {
  return screen.isTTY === true ? redraw(screen) : tell(screen);
}

function redraw(screen: Screen): Show {
  let height = 0;
  return (status) => {
    const lines = fitted(status, screen);
    const up = height === 0 ? "" : `\u001b[${height}A`;
    // Clears each line as it is written, and then whatever a longer view left below.
    screen.write(`${up}${lines.map((line) => `\u001b[2K${line}\n`).join("")}\u001b[0J`);
    height = lines.length;
  };
}

/** Clips the view: a line that wraps, or a view higher than the terminal, could not be redrawn in place. */
function fitted(status: RunStatus, { columns = 80, rows = 24 }: Screen): string[] {
  return viewOf(status, Math.max(2, rows - 1)).map((line) => cut(line, columns));
}

// oxlint-disable-next-line no-control-regex -- colours are told by control characters
const PIECES = /\u001b\[[\d;]*m|[^\u001b]/gu;

/** The first `columns` characters. Colour codes take no width, and are reset at the end. */
function cut(line: string, columns: number): string {
  let left = columns;
  const kept = (line.match(PIECES) ?? []).filter((piece) => piece.length > 2 || left-- > 0);
  return kept.join("");
}

function tell(screen: Screen): Show {
  const seen = new Map<string, string>();
  return (status) => {
    const lines = [
      ...status.nodes.map((node) => [`node ${node.name}`, lineOf(node)] as const),
      ["run", headOf(status)] as const,
    ];
    const changed = lines.filter(([key, line]) => seen.get(key) !== line);
    for (const [key, line] of changed) seen.set(key, line);
    screen.write(changed.map(([, line]) => `${line.trim()}\n`).join(""));
  };
}
