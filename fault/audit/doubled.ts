import type { Case } from "./case.js";
import type { Task } from "./history.js";
import { Tally } from "./findings.js";
import { named } from "./lost.js";
import type { Judged } from "./trial.js";

/**
 * A task may run again once its last run has ended otherwise than by completing, or has died, or may
 * have lost its lease or the record of its end; or when somebody has it retried by hand. It may never
 * run again once its outcome is recorded, whatever was disturbed. Returns what allowed the others.
 */
export function doubledRuns(on: Case): Record<string, number> {
  const again = new Tally();
  for (const task of on.history.tasks.values()) if (task.runs.length > 0) doubled(on, task, again);
  return again.toJSON();
}

function doubled(on: Case, task: Task, again: Tally): void {
  let before: Judged | null = null;
  let [accepted, retried, byHand] = [0, 0, false];
  for (const one of task.runs.map((run) => on.trial.of(run))) {
    while ((task.accepted[accepted]?.at ?? Infinity) <= one.start) accepted++;
    for (; (task.retrying[retried] ?? Infinity) <= one.start; retried++) byHand = true;
    if (one.doubtfulStart) {
      if (before !== null) again.add("a start long after its claim");
      continue;
    }
    if (accepted > retried) after(on, one);
    else if (before !== null) {
      const free = byHand ? Math.min(before.sureUntil, before.againFrom) : before.againFrom;
      if (one.start < free) beside(on, one, before);
      else again.add(byHand ? "retried by hand" : before.againWhy);
    }
    if (before === null || byHand || one.againFrom >= before.againFrom) before = one;
    byHand = false;
  }
}

function after({ findings, clock }: Case, { run, start }: Judged): void {
  findings.add(
    "ranTwiceWithoutCause",
    () => `${named(run.task)} started at ${clock(start)} on ${run.line.process}, after its outcome was recorded`,
  );
}

function beside({ findings, clock }: Case, { run, start }: Judged, before: Judged): void {
  const when = before.stop > start ? "beside" : `after the end (${before.run.end?.how}) of`;
  findings.add(
    "ranTwiceWithoutCause",
    () =>
      `${named(run.task)} started at ${clock(start)} on ${run.line.process}, ${when} its run on ${before.run.line.process} from ${clock(before.start)}`,
  );
}
