// The checker. It knows nothing of the queue and reads only the log.
import { acceptedTwice } from "./accepted.js";
import { advanced } from "./advance.js";
import { attemptsBurnt } from "./attempts.js";
import type { Case } from "./case.js";
import { miscounted } from "./counted.js";
import { doubledRuns } from "./doubled.js";
import { early } from "./early.js";
import { neverEnqueued } from "./enqueued.js";
import { clockFrom, Findings } from "./findings.js";
import { flowCounts, spreadFlows } from "./flows.js";
import { historyOf, type History } from "./history.js";
import { limits } from "./limits.js";
import type { Line, Terms } from "./line.js";
import { lost } from "./lost.js";
import { order } from "./order.js";
import { outcomes } from "./outcomes.js";
import { overlapped } from "./overlap.js";
import { pausedStarts } from "./paused.js";
import { recovery } from "./recovery.js";
import type { Report } from "./report.js";
import { atRest } from "./rest.js";
import { resume, stalledByClock } from "./resume.js";
import { starved } from "./starved.js";
import { SILENCE, Trial } from "./trial.js";
import { zombies } from "./zombies.js";

/** Holds a log against what was promised. The lines may come in any order. */
export function audit(lines: readonly Line[], terms: Terms): Report {
  const history = historyOf(lines, terms.leaseMs * SILENCE);
  spreadFlows(history);
  const trial = new Trial(history, terms);
  const findings = new Findings();
  const on: Case = { history, trial, terms, findings, clock: clockFrom(history.first) };
  lost(on);
  outcomes(on);
  neverEnqueued(on);
  acceptedTwice(on);
  const ranAgain = doubledRuns(on);
  const { peaks, lateStarts: aboveLowered } = limits(on);
  const orderKeys = order(on);
  overlapped(on);
  early(on);
  attemptsBurnt(on);
  const whilePausing = pausedStarts(on);
  atRest(on);
  const recovered = recovery(on);
  stalledByClock(on);
  const counted = miscounted(on);
  const watched = starved(on);
  advanced(on);
  const doubtful = { ...doubtsOf(trial), lateStarts: aboveLowered + whilePausing };
  return {
    violations: findings.total,
    findings: findings.toJSON(),
    ...countsOf(history, trial),
    orderKeys,
    ranAgain,
    peaks,
    recovery: recovered,
    resume: resume(on),
    zombies: zombies(on),
    leasesLost: trial.leasesLost,
    doubtful,
    counted,
    watched,
    flows: flowCounts(on),
  };
}

function doubtsOf({ judged }: Trial): { runs: number; starts: number } {
  return {
    runs: judged.filter(({ sureUntil, stop }) => sureUntil < stop).length,
    starts: judged.filter(({ doubtfulStart }) => doubtfulStart).length,
  };
}

function countsOf(history: History, { judged }: Trial) {
  const accepted = { succeeded: 0, failed: 0, cancelled: 0 };
  let acknowledged = 0;
  for (const task of history.tasks.values()) {
    if (task.acknowledged) acknowledged++;
    for (const { state } of task.accepted) accepted[state]++;
  }
  const processes = [...history.processes.values()];
  return {
    lines: history.lines,
    offered: [...history.offers.values()].filter(({ lines }) => lines.length > 0).length,
    acknowledged,
    tasks: history.tasks.size,
    runs: judged.length,
    deaths: processes.reduce((sum, { deaths }) => sum + deaths.length, 0),
    disturbances: processes.reduce((sum, { windows }) => sum + windows.length, 0),
    accepted,
    unended: judged.filter(({ stop }) => stop === Number.POSITIVE_INFINITY).length,
  };
}
