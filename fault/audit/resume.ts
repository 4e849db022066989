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
