import type { Case } from "./case.js";
import type { Task } from "./history.js";
import { named } from "./lost.js";
import { failureAt } from "./trial.js";

/**
 * Only an error or a timeout uses up an attempt: not a release, a shutdown, a lost lease or a crash. So
 * a start's attempt is at most one more than such endings before it, counted from the last outcome on,
 * because a retry by hand begins anew.
 */
export function attemptsBurnt(on: Case): void {
  for (const task of on.history.tasks.values()) burnt(on, task);
}

function burnt({ trial, findings, clock }: Case, task: Task): void {
  const failures = task.runs.flatMap((run) => failureAt(run, trial.of(run).stop) ?? []).toSorted((a, b) => a - b);
  let [failed, accepted, used] = [0, 0, 0];
  for (const run of task.runs) {
    const { start, doubtfulStart } = trial.of(run);
    while ((task.accepted[accepted]?.at ?? Infinity) <= start) {
      const { at } = task.accepted[accepted++]!;
      while ((failures[failed] ?? Infinity) <= at) failed++;
      used = 0;
    }
    while ((failures[failed] ?? Infinity) <= start) [failed, used] = [failed + 1, used + 1];
    const { attempt } = run.line;
    const most = used + 1;
    if (attempt > most && !doubtfulStart)
      findings.add(
        "attemptsBurnt",
        () => `${named(task)} started attempt ${attempt} at ${clock(start)}, after ${most - 1} failed ones`,
      );
  }
}
