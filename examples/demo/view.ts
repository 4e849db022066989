// What is shown, as lines of text. Nothing here knows whether there is a terminal.
import type pc from "picocolors";
import type { Report } from "./audit.js";
import type { Member } from "./fleet.js";
import type { Tally } from "./log.js";

type Colors = ReturnType<typeof pc.createColors>;

/** Everything at one moment. */
export interface Look {
  readonly seconds: number;
  /** Tasks of each type: enqueued in all. */
  readonly tasks: Readonly<Record<string, number>>;
  readonly tallies: readonly Tally[];
  readonly limits: readonly LimitLook[];
  readonly members: readonly Member[];
}

export interface LimitLook {
  readonly name: string;
  readonly about: string;
  /** Of a limit per key, in the busiest. */
  readonly used: number;
  readonly slots: number;
  /** Slots out for each key of a limit per key. */
  readonly keys?: readonly number[];
}

export interface Happening {
  readonly seconds: number;
  readonly text: string;
}

// With these a line has at most 80 columns.
const BAR_CELLS = 28;
const FINDINGS_MAX = 10;
const number = new Intl.NumberFormat("en");
const right = (n: number | string, width: number): string =>
  (typeof n === "number" ? number.format(n) : n).padStart(width);

/** The whole picture, for a terminal. */
export function picture(look: Look, happenings: readonly Happening[], c: Colors): string[] {
  return [
    ...Object.entries(look.tasks).map(([type, tasks]) => taskLine(look, type, tasks, c)),
    "",
    ...look.limits.map((limit) => limitLine(limit, c)),
    "",
    ...look.members.map((member) => memberLine(look, member, c)),
    "",
    ...happenings.map(({ seconds, text }) => `  ${c.dim(stamp(seconds))}  ${text}`),
  ];
}

function taskLine(look: Look, type: string, tasks: number, c: Colors): string {
  const done = doneOf(look, type);
  const full = Math.floor((done / tasks) * BAR_CELLS);
  const bar = c.green("━".repeat(full)) + c.dim("─".repeat(BAR_CELLS - full));
  return `  ${type.padEnd(10)}${bar}  ${right(done, 7)} / ${number.format(tasks).padEnd(7)}${c.dim("done")}`;
}

function limitLine({ name, about, used, slots, keys }: LimitLook, c: Colors): string {
  const figures = `${right(used, 7)} / ${String(slots).padEnd(7)}${c.dim(about)}`;
  if (keys !== undefined) {
    const each = keys.join("  ");
    return `  ${name.padEnd(10)}${c.cyan(each)}${pad(each.length)}  ${figures}`;
  }
  const [full, free] = [Math.min(used, BAR_CELLS), Math.max(0, Math.min(slots, BAR_CELLS) - used)];
  const bar = c.cyan("■".repeat(full)) + c.dim("□".repeat(free)) + pad(full + free);
  return `  ${name.padEnd(10)}${bar}  ${figures}`;
}

function memberLine(look: Look, { name, pid, alive }: Member, c: Colors): string {
  const own = look.tallies.filter((tally) => tally.worker === name);
  const done = own.reduce((sum, tally) => sum + tally.done, 0);
  const running = own.reduce((sum, tally) => sum + tally.running, 0);
  const state = alive ? `${right(running, 3)} running` : c.red("  killed -9");
  return `  ${name.padEnd(10)}${`pid ${pid}`.padEnd(BAR_CELLS - 11)}${state}  ${right(done, 7)} done`;
}

const pad = (taken: number): string => " ".repeat(Math.max(0, BAR_CELLS - taken));

/** The same in one line, for a file. */
export function summary(look: Look): string {
  const tasks = Object.entries(look.tasks).map(
    ([type, tasks]) => `${type} ${doneOf(look, type)}/${tasks}`,
  );
  const limits = look.limits.map(({ name, used, slots }) => `${name} ${used}/${slots}`);
  return `${stamp(look.seconds)}  done: ${tasks.join(", ")}; slots used: ${limits.join(", ")}`;
}

/** Ended runs of a type. A mail whose worker died may have ended twice, but counts once. */
export function doneOf({ tallies, tasks }: Look, type: string): number {
  const done = tallies.filter((tally) => tally.type === type).map((tally) => tally.done);
  return Math.min(
    tasks[type] ?? 0,
    done.reduce((sum, n) => sum + n, 0),
  );
}

export function stamp(seconds: number): string {
  return `${seconds.toFixed(1).padStart(5)} s`;
}

/** What the audit found, for the end. */
export function verdict(report: Report, seconds: number, c: Colors): string[] {
  const { acknowledged, runs, orderKeys, findings } = report;
  const peaks = report.peaks.map(({ limit, slots, peak }) => `${limit} ${peak} of ${slots}`);
  const rows: [string, number, string][] = [
    ["lost", report.lost, `${number.format(acknowledged)} tasks acknowledged`],
    ["doubled", report.doubled, `${number.format(runs)} runs`],
    ["over limit", report.overLimit, `peaks: ${peaks.join(", ")}`],
    ["out of order", report.outOfOrder, `${orderKeys} order keys`],
  ];
  return [
    "The audit of the handler log:",
    ...rows.map(([what, found, of]) => {
      const figure = right(found, 7);
      return `  ${what.padEnd(12)}${found === 0 ? c.green(figure) : c.red(figure)}   ${c.dim(of)}`;
    }),
    ...findings.slice(0, FINDINGS_MAX).map((finding) => c.red(`  ${finding}`)),
    "",
    reclaimed(report.reclaimedAfterMs),
    `${number.format(acknowledged)} tasks in ${seconds.toFixed(1)} s: ${number.format(Math.round(acknowledged / seconds))} tasks/s.`,
    isClean(report)
      ? c.green("Nothing was lost, doubled, over a limit or out of order.")
      : c.red("The audit failed."),
  ];
}

function reclaimed(afterMs: readonly number[]): string {
  if (afterMs.length === 0) return "No task had to be reclaimed.";
  const [first, last] = [afterMs[0]!, afterMs.at(-1)!].map((ms) => (ms / 1_000).toFixed(1));
  const tasks = afterMs.length === 1 ? "1 task" : `${afterMs.length} tasks`;
  const when = first === last ? first : `${first} to ${last}`;
  return `${tasks} of the killed worker started again on another worker, ${when} s after the kill.`;
}

export function isClean({ lost, doubled, overLimit, outOfOrder }: Report): boolean {
  return lost + doubled + overLimit + outOfOrder === 0;
}
