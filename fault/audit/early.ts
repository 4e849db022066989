import type { Case } from "./case.js";
import { latestReading } from "./database-clock.js";
import { named } from "./lost.js";
import type { Judged } from "./trial.js";

/** Nothing starts before its time by the clock of the database, nor before the end of a snooze that can have been recorded. */
export function early(on: Case): void {
  const { history, trial, findings, clock } = on;
  for (const { line, task, end } of history.runs) {
    const { runAt } = line;
    // A log that does not say for how long would hold nobody to it.
    if (end?.how === "snoozed" && !Number.isFinite(end.snoozeMs))
      findings.add("wrong", () => `${named(task)} snoozed, and nobody wrote down for how long`);
    // Whoever has it retried by hand wants it at once.
    const byHand = task.retrying.some((at) => at <= line.at);
    if (runAt === null || byHand) continue;
    const offered = history.offers.get(line.tag)?.lines[0]?.at ?? line.at;
    // Once it was due it may start, also when the clock was set back since.
    const now = latestReading(history.jumps, Math.min(offered, line.at), line.at);
    if (now < runAt)
      findings.add("early", () => `${named(task)} started at ${clock(line.at)}, ${Math.ceil(runAt - now)} ms early`);
  }
  for (const task of history.tasks.values()) {
    const runs = task.runs.map((run) => trial.of(run)).filter((one) => !one.doubtfulStart);
    runs.slice(1).forEach((one, i) => snoozed(on, runs[i]!, one));
  }
}

function snoozed({ trial, findings, clock }: Case, before: Judged, one: Judged): void {
  const { run, stop } = before;
  if (run.end?.how !== "snoozed" || one.start >= stop + run.end.snoozeMs) return;
  // A snooze that was never recorded, because its process died or could not say it, binds nobody.
  const gone = run.past.deaths.some((at) => at >= stop && at <= one.start);
  const retried = run.task.retrying.some((at) => at >= stop && at <= one.start);
  if (gone || retried || before.sureUntil < stop || trial.disturbed(run.past, stop, one.start)) return;
  findings.add("early", () => `${named(run.task)} started at ${clock(one.start)}, before its snooze was over`);
}
