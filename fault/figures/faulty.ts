// Figures that a run of faults gives.
import { LEASE_MS, RECOVER_MS } from "../load/terms.js";
import type { Figures } from "../verdict.js";
import type { Figure, Measured } from "./figure.js";
import { lastLineOf } from "./program.js";

const RESUME_MS_MAX = 10_000;
const LOG_LINES_MAX = 20;

interface Look {
  readonly ok: boolean;
  readonly seen: string;
}

const bitesOf = ({ faults }: Figures): number => faults.reduce((sum, { bites }) => sum + bites, 0);
const many = (n: number): string => n.toLocaleString("en-US");

/** Slow to start again, of those that a process died with. */
function recovery({ audit }: Figures): Look {
  const { maxMs, count } = audit.recovery;
  const most = LEASE_MS + RECOVER_MS;
  return {
    ok: (maxMs ?? 0) <= most,
    seen: `${count} recovered, the slowest after ${(maxMs ?? 0).toFixed(0)} ms`,
  };
}

function resume({ audit, logLinesMax, faults }: Figures): Look {
  const turns = faults.reduce((sum, fault) => sum + fault.turns, 0);
  const [lines, maxMs] = [Math.ceil(logLinesMax / Math.max(1, turns)), audit.resume.maxMs ?? 0];
  return {
    ok: maxMs <= RESUME_MS_MAX && lines <= LOG_LINES_MAX,
    seen: `work resumed at most ${maxMs.toFixed(0)} ms after the database was back, ${lines} log lines a worker each time`,
  };
}

function faulty(
  name: string,
  target: string,
  args: readonly string[],
  looks: readonly ((figures: Figures) => Look)[],
): Figure {
  return {
    name,
    target,
    measure: async (tell) => judge(await play(args, tell), looks),
  };
}

function judge(figures: Figures, looks: readonly ((figures: Figures) => Look)[]): Measured {
  const looked = looks.map((look) => look(figures));
  const all = `${many(figures.tasks)} tasks, ${many(bitesOf(figures))} faults, ${figures.violations} violations`;
  return {
    ok: figures.ok && looked.every(({ ok }) => ok),
    seen: [all, ...looked.map(({ seen }) => seen), ...figures.findings].join("; "),
    command: figures.command,
  };
}

/** Runs the faults in a process of their own, as the command line does. */
function play(args: readonly string[], tell: (line: string) => void): Promise<Figures> {
  tell(`npm run fault -- ${args.join(" ")}`);
  return lastLineOf<Figures>("../main.ts", { args: [...args, "--json"], codes: [0, 1] });
}

const atLeast =
  (what: string, n: number, of: (figures: Figures) => number) =>
  (figures: Figures): Look => ({ ok: of(figures) >= n, seen: `${many(of(figures))} ${what}` });

export const faultyFigures: readonly Figure[] = [
  faulty(
    "kills",
    "3 minutes of kill -9 every 2 s with 100,000 tasks: no violation; recovered within the lease + 2 s",
    // A little more is asked for: what comes after a node that failed is never made.
    ["--only", "kill", "--seconds", "180", "--tasks", "101000"],
    [atLeast("kills", 80, bitesOf), atLeast("tasks", 100_000, (f) => f.tasks), recovery],
  ),
  faulty(
    "backends",
    "60 s of terminated backends, every second: no violation",
    ["--only", "terminate-backends", "--seconds", "60"],
    [atLeast("times", 50, ({ faults }) => faults[0]!.turns)],
  ),
  faulty(
    "restarts",
    "10 immediate restarts: no violation; work resumes within 10 s, at most 20 log lines a worker meanwhile",
    ["--only", "restart", "--seconds", "60"],
    [atLeast("restarts", 10, bitesOf), resume],
  ),
  faulty(
    "zombies",
    "100 zombies: no violation",
    ["--only", "freeze", "--seconds", "120"],
    [atLeast("zombie runs", 100, (f) => f.audit.zombies.runs)],
  ),
  faulty(
    "replies",
    "1,000 lost replies of enqueues, claims and settles: no violation",
    ["--only", "lose-enqueue,lose-claim,lose-settle", "--seconds", "120"],
    [atLeast("replies lost", 1_000, bitesOf)],
  ),
];
