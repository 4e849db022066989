import type { Case } from "./case.js";
import { spreadOf } from "./findings.js";
import type { Spread } from "./report.js";
import { Unserved } from "./unserved.js";
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

/**
 * A clock that is set back stalls nothing for longer than a lease: by then something has started, somewhere, if there
 * was a worker for it.
 */
export function stalledByClock({ history, trial, terms, findings, clock }: Case): void {
  const unserved = new Unserved(history);
  for (const { to, byMs } of history.jumps) {
    const run = history.runs[firstAfter(history.runs, to, ({ line }) => line.at)];
    if (byMs > 0 || run === undefined || run.line.at - to <= terms.leaseMs) continue;
    const { at: first, type } = run.line;
    const away = [trial.everybody, unserved.of(type)];
    if (away.every((windows) => windows.touching(to, first).length === 0))
      findings.add(
        "slowRecovery",
        () => `nothing started for ${Math.round(first - to)} ms after the clock was set back at ${clock(to)}`,
      );
  }
}
