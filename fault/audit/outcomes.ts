import type { Case } from "./case.js";
import type { Of, Task } from "./history.js";
import { named } from "./lost.js";
import { failureAt } from "./trial.js";

/** Every outcome that was recorded must follow from what a handler, or somebody from outside, did before. */
export function outcomes(on: Case): void {
  for (const task of on.history.tasks.values()) {
    let before = Number.NEGATIVE_INFINITY;
    for (const outcome of task.accepted) {
      if (outcome.state === "succeeded") succeeded(on, task, outcome);
      else if (outcome.state === "failed") failed(on, task, outcome, before);
      else cancelled(on, task, outcome);
      before = outcome.at;
    }
  }
}

function succeeded({ findings, clock }: Case, task: Task, { at }: Of<"accepted">): void {
  const ends = task.runs.flatMap(({ end }) => (end?.how === "completed" ? [end.at] : []));
  if (ends.some((end) => end <= at)) return;
  if (ends.length === 0)
    findings.add("succeededWithoutRun", () => `${named(task)} succeeded, but no handler completed`);
  else
    findings.add(
      "succeededTooEarly",
      () =>
        `${named(task)} succeeded at ${clock(at)}, but completed at ${clock(Math.min(...ends))}`,
    );
}

// A task that was in hand at so many crashes is claimed alone, and fails at the next. The log may know one
// less: a worker can die with a task in hand whose handler it has not started yet.
const CRASHES = 4;

/** `before`: the outcome before, from which a retry by hand began anew. */
function failed(on: Case, task: Task, outcome: Of<"accepted">, before: number): void {
  const { at, code } = outcome;
  if (code === "poisoned" && crashesOf(on, task, at) >= CRASHES - 1) return;
  const attempts = task.claims?.attempts ?? 1;
  const used = task.runs.filter((run) => {
    const failure = failureAt(run, on.trial.of(run).stop);
    return failure !== null && failure > before && failure <= at;
  }).length;
  if (used < attempts)
    on.findings.add(
      "failedWithoutCause",
      () => `${named(task)} failed, but used ${used} of ${attempts} attempts`,
    );
}

/** Runs that were cut short by a death, or whose lease was or may have been lost. */
function crashesOf({ trial }: Case, { runs }: Task, at: number): number {
  return runs.filter((run) => {
    const { diedAt, zombie, sureUntil, stop } = trial.of(run);
    return run.line.at < at && (diedAt !== null || zombie || sureUntil < stop);
  }).length;
}

function cancelled({ findings }: Case, task: Task, { at }: Of<"accepted">): void {
  const asked = task.cancelling.some((asking) => asking <= at);
  const own = task.runs.some(({ end }) => end?.how === "cancelled" && end.at <= at);
  if (!asked && !own)
    findings.add("cancelledWithoutCause", () => `${named(task)} was cancelled, but nobody asked`);
}
