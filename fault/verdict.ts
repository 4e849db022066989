// The result of a run: its figures, whether it passed, and a readable table.
import { tooDoubtful } from "./audit/doubts.js";
import type { Report } from "./audit/report.js";
import { flowNames, windowNumbers } from "./load/flows.js";
import { groups, limitsOf, terms, typeNames } from "./load/terms.js";
import type { Options } from "./options.js";
import type { Played } from "./run.js";
import { memorySlope, quantile } from "./samples.js";

interface LimitFigure {
  readonly limit: string;
  readonly slots: number;
  /** How many ran at once while this was its number. */
  readonly peak: number;
}

/** Groups of which a task ran, and of which all slots were seen in use. */
interface GroupFigure {
  readonly used: number;
  readonly full: number;
}

interface FaultFigure {
  readonly fault: string;
  readonly turns: number;
  readonly bites: number;
  /** How long a turn took, on average. */
  readonly meanMs: number;
  readonly interrupted: number;
}

export interface Figures {
  readonly ok: boolean;
  readonly seed: number;
  readonly command: string;
  readonly seconds: number;
  readonly tasks: number;
  readonly runs: number;
  readonly tasksPerSecond: number;
  readonly violations: number;
  /** In words: every reason why the run failed. */
  readonly findings: readonly string[];
  readonly limits: readonly LimitFigure[];
  readonly groups: GroupFigure;
  readonly faults: readonly FaultFigure[];
  /** Of the largest worker, in MB a minute. */
  readonly memorySlope: number;
  /** Of the tables that change all the time. */
  readonly deadTuplesMax: number;
  readonly stepP50Ms: number | null;
  readonly stepP99Ms: number | null;
  /** Warnings and errors that the workers logged: the most of any one. */
  readonly logLinesMax: number;
  readonly logLines: Readonly<Record<string, number>>;
  readonly audit: Report;
}

export function figuresOf(options: Options, played: Played): Figures {
  const { report, seconds } = played;
  const limits = limitsInUse(options).map(([limit, slots]) => {
    return { limit, slots, peak: peakOf(report, limit, slots) };
  });
  const crowd = groupsOf(report);
  const faults = played.tallies.map(({ fault, turns, bites, ms, interrupted }) => {
    const meanMs = Math.round(ms / Math.max(1, turns));
    return { fault: fault.name, turns, bites, meanMs, interrupted };
  });
  const findings = [
    ...played.wrong,
    ...Object.entries(report.findings).flatMap(([what, { count, first }]) =>
      count === 0 ? [] : [`${what}: ${count}, first ${first.join("; ")}`],
    ),
    ...tooDoubtful(report),
    ...(report.counted.ended > 0 && report.counted.scrapes > report.counted.ended
      ? []
      : ["no worker metrics were compared with the audit"]),
    ...(options.calmSeconds === 0 || report.watched.calm > 0
      ? []
      : ["waiting tasks were never explained during the calm time while workers had free permits"]),
    ...limits.flatMap(({ limit, slots, peak }) =>
      peak >= slots ? [] : [`limit ${limit} was never full: ${peak} of ${slots}`],
    ),
    ...(crowd.full * 2 >= crowd.used ? [] : [`only ${crowd.full} of ${crowd.used} groups were ever full`]),
    ...faults.flatMap(({ fault, bites }) => (bites > 0 ? [] : [`${fault} never took effect`])),
  ];
  const tasks = report.acknowledged + report.flows.parts;
  const steps = played.stepsMs.toSorted((a, b) => a - b);
  const logLines = Object.fromEntries(played.logLines);
  return {
    ok: findings.length === 0 && report.violations === 0,
    seed: options.seed,
    command: commandOf(options),
    seconds: rounded(seconds),
    tasks,
    runs: report.runs,
    tasksPerSecond: rounded(tasks / seconds),
    violations: report.violations,
    findings,
    limits,
    groups: crowd,
    faults,
    memorySlope: rounded(memorySlope(played.samples)),
    deadTuplesMax: Math.max(0, ...played.samples.map(({ deadTuples }) => deadTuples ?? 0)),
    stepP50Ms: roundedOrNull(quantile(steps, 0.5)),
    stepP99Ms: roundedOrNull(quantile(steps, 0.99)),
    logLinesMax: Math.max(0, ...Object.values(logLines)),
    logLines,
    audit: report,
  };
}

/** The limits of the types that were produced. */
function limitsInUse({ types, flows }: Options): [string, number][] {
  const used = new Set(types.flatMap((type) => limitsOf(type, "*", "*")));
  const limits = Object.entries(terms.limits).filter(([limit]) => used.has(limit));
  return [...limits, ...Object.entries(windowNumbers(flows))];
}

/** The groups are many and small, so they are told together: most of those in use must have been full. */
function groupsOf(report: Report): GroupFigure {
  const peaks = groups.map(({ name, total }) => ({ peak: peakOf(report, name, total!), total }));
  return {
    used: peaks.filter(({ peak }) => peak > 0).length,
    full: peaks.filter(({ peak, total }) => peak >= total!).length,
  };
}

/** While another number was in force, reaching this one would prove nothing. */
function peakOf(report: Report, limit: string, slots: number): number {
  const found = report.peaks.find((peak) => peak.limit === limit);
  return found?.under.find((under) => under.slots === slots)?.peak ?? 0;
}

function commandOf(options: Options): string {
  const { seed, seconds, calmSeconds, faults, tasks, workers, types, flows, sabotage } = options;
  const words = ["npm run fault --", `--seed ${seed} --seconds ${seconds} --workers ${workers}`];
  const load = [...types, ...flows];
  if (load.length < typeNames.length + flowNames.length) words.push(`--types ${load.join(",")}`);
  words.push(tasks === null ? `--calm ${calmSeconds}` : `--tasks ${tasks}`);
  if (sabotage !== null) words.push(`--sabotage ${sabotage}`);
  return [...words, `--only ${faults.map(({ name }) => name).join(",")}`].join(" ");
}

const rounded = (n: number): number => Number(n.toFixed(1));
const roundedOrNull = (n: number | null): number | null => (n === null ? null : rounded(n));

export function table(figures: Figures): string {
  const { audit, limits, faults } = figures;
  const row = (name: string, ...rest: (string | number | null)[]): string =>
    `  ${name.padEnd(26)}${rest.map((cell) => String(cell ?? "-").padStart(10)).join("")}`;
  const { recovery, resume, zombies, flows } = audit;
  return [
    "",
    "violations",
    ...Object.entries(audit.findings).map(([what, { count }]) => row(what, count)),
    "",
    row("limit", "slots", "peak"),
    ...limits.map(({ limit, slots, peak }) => row(limit, slots, peak)),
    row("groups in use, full", figures.groups.used, figures.groups.full),
    "",
    row("fault", "turns", "bites", "mean ms"),
    ...faults.map(({ fault, turns, bites, meanMs }) => row(fault, turns, bites, meanMs)),
    "",
    row("", "count", "median", "max"),
    row("recovery, ms", recovery.count, whole(recovery.medianMs), whole(recovery.maxMs)),
    row("resume, ms", resume.count, whole(resume.medianMs), whole(resume.maxMs)),
    "",
    row("", "succeeded", "failed", "cancelled", "retried"),
    row("workflow runs", flows.succeeded, flows.failed, flows.cancelled, flows.retried),
    "",
    row("tasks", figures.tasks),
    row("tasks of workflows", flows.parts),
    row("runs", figures.runs),
    row("tasks/s", figures.tasksPerSecond),
    row("deaths", audit.deaths),
    row("scrapes, workers, final", audit.counted.scrapes, audit.counted.workers, audit.counted.ended),
    row("samples, calm, tasks", audit.watched.samples, audit.watched.calm, audit.watched.tasks),
    row("longest starvation, ms", audit.watched.longestMs),
    row("completed, unconfirmed", audit.counted.completed, audit.counted.unconfirmed),
    row("zombie runs", zombies.runs),
    row("leases lost undisturbed", audit.leasesLost),
    row("doubtful runs, starts", audit.doubtful.runs, audit.doubtful.starts),
    row("step p50 / p99, ms", figures.stepP50Ms, figures.stepP99Ms),
    row("memory growth, MB/min", figures.memorySlope),
    row("dead tuples, max", figures.deadTuplesMax),
    row("log lines per worker, max", figures.logLinesMax),
    "",
    ...figures.findings.map((finding) => `! ${finding}`),
    figures.ok ? "The run passed." : "The run failed.",
    `Repeat with: ${figures.command}`,
  ].join("\n");
}

const whole = (n: number | null): number | null => (n === null ? null : Math.round(n));
