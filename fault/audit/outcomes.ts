import type { Case } from "./case.js";
import { crashesOf, unseenCrashes } from "./crashes.js";
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

/** It must be the success of a run that had completed, under whose claim nobody else had taken over. */
function succeeded(on: Case, task: Task, { at, claim }: Of<"accepted">): void {
  const { trial, findings, clock } = on;
  const run = task.runs.find(({ line }) => line.claim === claim);
  if (run === undefined || run.end?.how !== "completed")
    return findings.add(
      "succeededWithoutRun",
      () => `${named(task)} succeeded under claim ${claim}, but no handler completed under it`,
    );
  if (run.end.at > at)
    findings.add(
      "succeededTooEarly",
      () => `${named(task)} succeeded at ${clock(at)}, but completed at ${clock(run.end!.at)}`,
    );
  const next = task.runs
    .slice(task.runs.indexOf(run) + 1)
    .map((later) => trial.of(later))
    .find(({ start, doubtfulStart }) => !doubtfulStart && start < at);
  // Who starts was given a claim of his own before: from then on the earlier one is worth nothing.
  if (next !== undefined)
    findings.add(
      "acceptedFromZombie",
      () =>
        `${named(task)} succeeded at ${clock(at)} under the claim of ${run.line.process}, but ${next.run.line.process} had it since ${clock(next.start)}`,
    );
}

// In hand at so many crashes a task fails. The log may know one less: a worker can die with a task in hand
// whose handler it has not started yet.
const CRASHES = 4;

/** `before`: the outcome before, from which a retry by hand began anew. */
function failed(on: Case, task: Task, outcome: Of<"accepted">, before: number): void {
  const { at, code } = outcome;
  const crashes = crashesOf(on, task, before, at);
  const unseen = Math.max(1, unseenCrashes(on, task, before, at));
  if (code === "poisoned" && crashes + unseen >= CRASHES) return;
  const attempts = task.claims?.attempts ?? 1;
  const used = task.runs.filter((run) => {
    const failure = failureAt(run, on.trial.of(run).stop);
    return failure !== null && failure > before && failure <= at;
  }).length;
  if (used < attempts)
    on.findings.add(
      "failedWithoutCause",
      () =>
        `${named(task)} failed (${code}) at ${on.clock(at)}, but used ${used} of ${attempts} attempts and was in hand at ${crashes} crashes: ${runsOf(on, task)}`,
    );
}

/** Its runs, in the words of the log, for whoever looks for the reason. */
function runsOf({ clock }: Case, task: Task): string {
  const told = task.runs.map(({ line, end }) => {
    const how = end === null ? "no end" : `${end.how} ${end.reason ?? ""} ${clock(end.at)}`;
    return `${line.process} attempt ${line.attempt} ${clock(line.at)} (${how})`;
  });
  return told.length === 0 ? "no runs" : told.join("; ");
}

function cancelled({ findings }: Case, task: Task, { at }: Of<"accepted">): void {
  const asked = task.cancelling.some((asking) => asking <= at);
  const own = task.runs.some(({ end }) => end?.how === "cancelled" && end.at <= at);
  if (!asked && !own) findings.add("cancelledWithoutCause", () => `${named(task)} was cancelled, but nobody asked`);
}
