import type { Case } from "./case.js";
import type { Of } from "./history.js";
import { named } from "./lost.js";

interface Pause {
  /** Since when it is paused for certain; null if it may not be. */
  since: number | null;
  /** How many are about to resume it, and may do so at any moment. */
  resuming: number;
}

/**
 * Nothing of a type starts from `paused` to `resuming`. What was claimed just before may write its
 * start line a little later: such starts are counted, and returned. A process that is disturbed may
 * take longer, so its starts are counted too.
 */
export function pausedStarts({ history, trial, findings, clock }: Case): number {
  const types = new Map<string, Pause>();
  const { pauses } = history;
  let [next, late] = [0, 0];
  for (const { run, start, doubtfulStart } of trial.judged) {
    while ((pauses[next]?.at ?? Infinity) <= start) note(types, pauses[next++]!);
    const since = types.get(run.line.type)?.since ?? null;
    if (since === null || doubtfulStart) continue;
    if (start - since <= trial.lateMs || trial.disturbed(run.past, since, start)) late++;
    else
      findings.add("pausedStarts", () => `${named(run.task)} started at ${clock(start)}, paused since ${clock(since)}`);
  }
  return late;
}

function note(
  types: Map<string, Pause>,
  { kind, types: named, at }: Of<"pausing" | "paused" | "resuming" | "resumed">,
): void {
  for (const type of named) {
    const pause = types.get(type) ?? { since: null, resuming: 0 };
    types.set(type, pause);
    if (kind === "paused" && pause.resuming === 0) pause.since ??= at;
    else if (kind === "resuming") [pause.since, pause.resuming] = [null, pause.resuming + 1];
    else if (kind === "resumed") pause.resuming = Math.max(0, pause.resuming - 1);
  }
}
