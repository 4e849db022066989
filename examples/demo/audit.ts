// The checker. It knows nothing of the queue and reads only the log.
import { runsOf, type Run } from "./runs.js";
import { sweep, type Peak } from "./sweep.js";

/** One line of the log. Handlers write start, end and left; the demo writes the rest. */
export interface Entry {
  /**
   * acknowledged: enqueue returned this task. start, end: a handler began and came to its end. left:
   * it gave up. dead: a worker is known to be gone. asked, set: before and after a change of a limit.
   */
  readonly kind: "acknowledged" | "start" | "end" | "left" | "dead" | "asked" | "set";
  readonly worker?: string | null;
  readonly task?: string | null;
  readonly claim?: string | null;
  readonly attempt?: number | null;
  readonly type?: string | null;
  readonly tenant?: string | null;
  readonly order_key?: string | null;
  /** The how many-th of its order key, as the producer counted them. */
  readonly place?: number | null;
  /** Those that a run counts in, as `name` or `name/key`; or the one that is changed. */
  readonly limits?: readonly string[] | null;
  /** The transaction that completed the task wrote this end: it is here if and only if that was accepted. */
  readonly recorded?: boolean | null;
  readonly slots?: number | null;
}

/** A line as it is read: complete, with its time in milliseconds of the database's clock. */
export type Line = Required<Entry> & { readonly at: number };

/** What the audit found. The first four must be 0. */
export interface Report {
  /** Acknowledged tasks that no handler brought to its end. */
  readonly lost: number;
  /** Tasks that were completed more than once. */
  readonly doubled: number;
  /** Starts above the number in force. */
  readonly overLimit: number;
  /** Starts of an order key out of turn, or beside another of it. */
  readonly outOfOrder: number;
  readonly acknowledged: number;
  readonly runs: number;
  readonly orderKeys: number;
  readonly peaks: readonly Peak[];
  /** For each task that a worker died with: how long after the death it began again, ascending. */
  readonly reclaimedAfterMs: readonly number[];
  /** The first findings of each kind, in words. */
  readonly findings: readonly string[];
}

const FINDINGS_MAX = 50;

/** Checks a log whose lines are in the order of their times. */
export function audit(log: readonly Line[]): Report {
  const runs = runsOf(log);
  const acknowledged = log.filter((line) => line.kind === "acknowledged").map((line) => line.task!);
  const completed = grouped(
    runs.filter((run) => run.completed),
    (run) => run.task,
  );
  const lost = acknowledged
    .filter((task) => !completed.has(task))
    .map((task) => `${task} was lost`);
  const doubled = [...completed.values()].filter((of) => of.length > 1).map(describeDoubled);
  const keys = grouped(
    runs.filter((run) => run.orderKey !== null),
    (run) => run.orderKey!,
  );
  const outOfOrder = [...keys.values()].flatMap(disorder);
  const { over, peaks } = sweep(log, runs);
  return {
    lost: lost.length,
    doubled: doubled.length,
    overLimit: over.length,
    outOfOrder: outOfOrder.length,
    acknowledged: acknowledged.length,
    runs: runs.length,
    orderKeys: keys.size,
    peaks,
    reclaimedAfterMs: runs.flatMap((run) => run.reclaimedAfterMs ?? []).toSorted((a, b) => a - b),
    findings: [lost, doubled, over, outOfOrder].flatMap((found) => found.slice(0, FINDINGS_MAX)),
  };
}

function describeDoubled(runs: readonly Run[]): string {
  const { type, task } = runs[0]!;
  return `${type} ${task} was completed by ${runs.map((run) => run.worker).join(" and ")}`;
}

/** Each run of a key must follow the completion of the place before it, or begin its own again. */
function disorder(runs: readonly Run[]): string[] {
  return runs.flatMap((run, i) => {
    const before = runs[i - 1];
    if (before !== undefined && before.stop > run.start)
      return [`${run.orderKey}: ${run.task} began beside ${before.task}`];
    const due = before === undefined ? 0 : before.place + (before.completed ? 1 : 0);
    return run.place === due ? [] : [`${run.orderKey}: place ${run.place} began instead of ${due}`];
  });
}

function grouped<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) {
    const group = groups.get(keyOf(one));
    if (group === undefined) groups.set(keyOf(one), [one]);
    else group.push(one);
  }
  return groups;
}
