// A readable report: plain text, at most a few lines for each kind of finding.
import { VIOLATIONS, type Peak, type Report, type Spread, type Violation } from "./report.js";

const WORDS: Record<Violation, string> = {
  lost: "tasks lost",
  succeededWithoutRun: "succeeded without a completed run",
  succeededTooEarly: "succeeded before its run completed",
  failedWithoutCause: "failed with attempts left",
  cancelledWithoutCause: "cancelled without a request",
  neverEnqueued: "started with other terms than enqueued",
  acceptedTwice: "outcomes recorded twice",
  acceptedFromZombie: "success recorded under an expired claim",
  ranTwiceWithoutCause: "ran twice without cause",
  overLimit: "started above a limit",
  outOfOrder: "started out of order",
  startedBeforeRecorded: "started before the previous outcome was recorded",
  overlapped: "started beside another task of its key",
  early: "started early",
  attemptsBurnt: "attempts used without a failure",
  pausedStarts: "started while paused",
  heldAtRest: "limits with slots held at rest",
  wrong: "inconsistent at rest",
  slowRecovery: "recovered too late",
  starved: "could run but did not start",
  miscounted: "metrics that contradict the log",
  lostItems: "flow items lost",
  itemTwice: "items created twice",
  advancedTwice: "flows advanced twice",
  advancedWithoutCause: "flows advanced without cause",
  aboveWindow: "started above a window",
  outOfSequence: "started out of sequence",
  startedTooSoon: "started before its dependencies ended",
  heardWrong: "given a value that was not recorded",
  notEnded: "flows not ended at rest",
  wrongVerdict: "flows that ended in a wrong state",
};

/** `each`: how many findings of a kind are described in words. */
export function describe(report: Report, each = 5): string {
  const rows = VIOLATIONS.map((kind): Row => [WORDS[kind], String(report.findings[kind].count)]);
  const told = VIOLATIONS.flatMap((kind) => {
    const { count, first } = report.findings[kind];
    const more = count - Math.min(each, first.length);
    const lines = first.slice(0, each).map((words) => `  ${words}`);
    if (count === 0) return [];
    return ["", `${WORDS[kind]}: ${count}`, ...lines, ...(more > 0 ? [`  and ${more} more`] : [])];
  });
  return [
    ...table("what happened", happened(report)),
    ...table("violations", rows),
    ...table("peaks (limit x peak at that limit)", limited(report).map(peakRow)),
    ...table("reruns by cause", countRows(report.ranAgain)),
    ...table("recovery times", inTime(report)),
    ...table("doubtful runs and zombies", inDoubt(report)),
    report.violations === 0 ? "no violation" : `${report.violations} VIOLATIONS`,
    ...told,
    "",
  ].join("\n");
}

type Row = readonly [name: string, value: string];

function table(title: string, rows: readonly Row[]): string[] {
  if (rows.length === 0) return [];
  const width = Math.max(...rows.map(([name]) => name.length));
  return [title, ...rows.map(([name, value]) => `  ${name.padEnd(width)}  ${value}`), ""];
}

function countRows(counts: Readonly<Record<string, number>>): Row[] {
  return Object.entries(counts).map(([name, count]) => [name, String(count)]);
}

function happened(report: Report): Row[] {
  const { lines, offered, acknowledged, tasks, runs, orderKeys, deaths, disturbances } = report;
  const counts = { lines, offered, acknowledged, tasks, runs, "order keys": orderKeys };
  return countRows({
    ...counts,
    deaths,
    disturbances,
    ...report.accepted,
    "without an end": report.unended,
    flows: report.flows.acknowledged,
  });
}

/** Those that had a number at any time. */
function limited({ peaks }: Report): Peak[] {
  return peaks.filter(({ under }) => under.some(({ slots }) => slots !== null));
}

function peakRow({ limit, peak, under }: Peak): Row {
  const told = under.map((one) => `${one.slots ?? "none"} x ${one.peak}`).join(", ");
  return [limit, `${String(peak).padStart(4)}   (${told})`];
}

function inTime({ recovery, resume }: Report): Row[] {
  const excused = Object.entries(recovery.excused).map(([why, n]): Row => [`  ${why}`, String(n)]);
  return [
    ["runs whose process died", String(recovery.died)],
    ["  recorded without running again", String(recovery.settled)],
    ["  started again after", spreadIn(recovery)],
    ...excused,
    ["first start after a disturbance of all workers", spreadIn(resume)],
  ];
}

function spreadIn({ count, medianMs, p95Ms, maxMs }: Spread): string {
  if (count === 0) return "never";
  return `median ${medianMs} ms, p95 ${p95Ms} ms, max ${maxMs} ms (${count})`;
}

function inDoubt({ zombies, leasesLost, doubtful }: Report): Row[] {
  return countRows({
    "zombie runs": zombies.runs,
    "  that reported completion": zombies.completedOutside,
    "  that alone completed a task": zombies.succeededByZombiesAlone,
    "leases lost without a disturbance": leasesLost,
    "runs with a doubtful lease": doubtful.runs,
    "doubtful starts": doubtful.starts,
    "starts just after a change": doubtful.lateStarts,
  });
}
