import type { Line } from "./line.js";

// In the same moment things end before others begin, so that what only touches does not overlap.
const TURNS: Partial<Record<Line["kind"], number>> = { offered: 0, start: 2 };
const turnOf = (line: Line): number => TURNS[line.kind] ?? 1;

/** By time. */
export function inOrder(lines: readonly Line[]): readonly Line[] {
  const compare = (a: Line, b: Line): number => a.at - b.at || turnOf(a) - turnOf(b);
  const sorted = lines.every((line, i) => i === 0 || compare(lines[i - 1]!, line) <= 0);
  return sorted ? lines : lines.toSorted(compare);
}
