import type { Line } from "./line.js";

/** The database's clock is set between the two, forward or back (`byMs` below 0). */
export interface Jump {
  readonly from: number;
  to: number;
  readonly byMs: number;
}

type JumpLine = Extract<Line, { readonly kind: "clockMoving" | "clockMoved" }>;

export function noteJump(jumps: Jump[], { kind, at, byMs }: JumpLine): void {
  const last = jumps.at(-1);
  if (kind === "clockMoving") jumps.push({ from: at, to: Number.POSITIVE_INFINITY, byMs });
  else if (last !== undefined) last.to = at;
}

/**
 * The latest time that the database's clock showed between two moments of the log. While it is being set, it may
 * show either time: the later one counts.
 */
export function latestReading(jumps: readonly Jump[], from: number, to: number): number {
  let [aheadMs, latest] = [0, Number.NEGATIVE_INFINITY];
  for (const jump of jumps) {
    if (jump.from > to) break;
    // Until then it may have shown the time before.
    const until = Math.min(jump.to, to);
    if (until >= from) latest = Math.max(latest, until + aheadMs);
    aheadMs += jump.byMs;
    if (until >= from) latest = Math.max(latest, until + aheadMs);
  }
  return Math.max(latest, to + aheadMs);
}
