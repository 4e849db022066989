import type { Case } from "./case.js";
import { spreadOf } from "./findings.js";
import type { Spread } from "./report.js";
import { firstAfter } from "./windows.js";

/**
 * How long after each disturbance of everybody the first handler started, anywhere. One that is
 * followed by the next before that says nothing, nor does one after which there was nothing to do.
 */
export function resume({ history, trial }: Case): Spread {
  const windows = trial.everybody.all;
  const durations = windows.flatMap(({ to }, i) => {
    const first = history.runs[firstAfter(history.runs, to, ({ line }) => line.at)]?.line.at;
    const next = windows[i + 1]?.from ?? Number.POSITIVE_INFINITY;
    return first === undefined || next < first ? [] : [first - to];
  });
  return spreadOf(durations);
}

/** A clock that is set back stalls nothing for longer than a lease: by then something has started, somewhere. */
export function stalledByClock({ history, trial, terms, findings, clock }: Case): void {
  for (const { to, byMs } of history.jumps) {
    const first = history.runs[firstAfter(history.runs, to, ({ line }) => line.at)]?.line.at;
    if (byMs > 0 || first === undefined || first - to <= terms.leaseMs) continue;
    if (trial.everybody.touching(to, first).length === 0)
      findings.add(
        "slowRecovery",
        () =>
          `nothing started for ${Math.round(first - to)} ms after the clock was set back at ${clock(to)}`,
      );
  }
}
