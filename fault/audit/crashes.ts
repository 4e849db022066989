import type { Case } from "./case.js";
import type { Run, Task } from "./history.js";
import type { Past } from "./past.js";
import type { Window } from "./windows.js";

// Faults in which a worker stands still. One that was only cut off tells, when it is back, that it did not
// die: what it had in hand is not to blame.
const STOOD_STILL = new Set(["freeze", "freeze-in-claim", "block-loop"]);

/**
 * Runs between two moments in which their worker died, or stood still, or lost its lease although nothing
 * disturbed it. These are the crashes that may poison a task. No other run may: not one that an outage or a
 * broken way to the database cost its lease.
 */
export function crashesOf(on: Case, task: Task, after: number, until: number): number {
  return task.runs.filter((run) => {
    if (run.line.at <= after || run.line.at >= until) return false;
    return died(on, run, until) || stoodStill(on, run, until) || lostItself(on, run);
  }).length;
}

/**
 * Workers that may have crashed between two moments with a task in hand of which they had not heard: they
 * died, or stood still, while the answer to a claim could be on its way for long, or be lost. So there is
 * no start of it in the log. Without a disturbance an answer takes a moment, and the handler starts at once.
 */
export function unseenCrashes(on: Case, task: Task, after: number, until: number): number {
  const { trial, history, terms } = on;
  const known = new Set(task.runs.map(({ past }) => past));
  const mayHave = (past: Past): boolean =>
    past.deaths.some((at) => at > after && at < until && trial.announced(past, at - terms.leaseMs, at)) ||
    past.windows.some(
      (window) => STOOD_STILL.has(window.what) && trial.isLong(window) && window.to > after && window.from < until,
    );
  const workers = new Set(history.runs.map(({ past }) => past));
  return [...workers].filter((past) => !known.has(past) && mayHave(past)).length;
}

/**
 * Its worker was gone before its end could be recorded. Whoever leaves in good order hands back what he
 * has, unless he cannot reach the database.
 */
function died({ trial }: Case, run: Run, until: number): boolean {
  const { past, end, task } = run;
  const ended = end?.at ?? run.line.at;
  const death = past.deaths.find((at) => at >= ended);
  if (death === undefined || death > until) return false;
  const disturbed = trial.disturbed(past, ended, death);
  const inOrder = past.terminating.some((at) => at <= death);
  if (inOrder) return disturbed;
  if (end === null) return true;
  const elsewhere = task.runs.some(({ line }) => line.at > ended && line.at < death);
  return !elsewhere && (disturbed || death - ended <= trial.lateMs);
}

/** What it said last before, or first after, may belong to what it had in hand. */
function stoodStill({ trial }: Case, run: Run, until: number): boolean {
  const { start, stop, doubtfulStart } = trial.of(run);
  const first = start - (doubtfulStart ? trial.lateMs : 0);
  const inHand = ({ from, to }: Window): boolean => first <= to && stop >= from - trial.lateMs;
  return run.past.windows.some(
    (window) => STOOD_STILL.has(window.what) && window.from <= until && trial.isLong(window) && inHand(window),
  );
}

function lostItself({ trial, terms }: Case, { end, past }: Run): boolean {
  if (end?.how !== "left" || end.reason !== "lease_lost") return false;
  return !trial.announced(past, end.at - terms.leaseMs, end.at);
}
