import type { Case } from "./case.js";
import type { History, Of, Task } from "./history.js";
import type { Waiting } from "./line.js";
import { named } from "./lost.js";
import type { Watched } from "./report.js";
import { Windows, type Window } from "./windows.js";

/** A task that could run starts within this time while a worker has room. */
const STARVED_MS = 1_000;
/**
 * More than that, for what takes its time without being wrong. A keeper looks every second while there is work and
 * otherwise every 2.5 s, which is when it finds what an open transaction enqueued for a time that has passed. The rest
 * is for a machine with more to do than it has cores.
 */
const ALLOWANCE_MS = 2_000;
/** Two samples further apart are not consecutive: the server, or the machine, stood still in between. */
const GAP_MS_MAX = 2_500;

/** How long a task could have run, by samples that follow each other. */
interface Span {
  readonly since: number;
  readonly could: Could;
  told: boolean;
}

/**
 * A task that could run and did not: sample after sample says that nothing holds it, or that only tasks hold it which
 * do not run themselves, for longer than a second and an allowance. Counts only what happened in calm times: not while
 * a fault was active, nor within the time of a recovery after one, nor while more tasks could run than workers have
 * room for. Each task is told once.
 */
export function starved(on: Case): Watched {
  const { history, findings, clock } = on;
  const faults = new Windows(faultsOf(on));
  const watched = { samples: 0, calm: 0, tasks: 0, longestMs: 0 };
  let spans = new Map<string, Span>();
  let before = Number.POSITIVE_INFINITY;
  for (const sample of history.samples) {
    const { at } = sample;
    const calm = faults.touching(Math.min(at, before), at).length === 0;
    const counts = calm && sample.open <= sample.room;
    const follows = counts && at >= before && at - before <= GAP_MS_MAX;
    watched.samples++;
    watched.calm += counts ? 1 : 0;
    watched.tasks += counts ? sample.tasks.length : 0;
    spans = counts ? spansOf(sample, follows ? spans : new Map(), on, before) : new Map();
    for (const [id, span] of spans) {
      watched.longestMs = Math.max(watched.longestMs, Math.round(at - span.since));
      if (span.told || at - span.since <= STARVED_MS + ALLOWANCE_MS) continue;
      span.told = true;
      findings.add(
        "starved",
        () =>
          `${wordsFor(id, history.tasks.get(id))} could run from ${clock(span.since)} to ${clock(at)}: ${span.could.why}`,
      );
    }
    before = at;
  }
  return watched;
}

/** Those that could run by this sample, each since the first of the samples in a row that say so. */
function spansOf(
  { at, tasks }: Of<"explained">,
  spans: ReadonlyMap<string, Span>,
  { history }: Case,
  before: number,
): Map<string, Span> {
  const now = new Map<string, Span>();
  for (const waiting of tasks) {
    const could = couldRun(waiting);
    if (could === null) continue;
    const task = history.tasks.get(waiting.task);
    const within = (time: number): boolean => time >= before && time <= at;
    const moved = hasMoved(task, within) || wasChanged(history, waiting.type, task, within);
    const last = moved ? undefined : spans.get(waiting.task);
    now.set(waiting.task, goesOn(last, could) ?? { since: at, could, told: false });
  }
  return now;
}

/** The same wait, unless the slots have passed to other tasks since: then others run, if only for a moment. */
function goesOn(span: Span | undefined, { why, holders }: Could): Span | undefined {
  if (span === undefined || span.could.why !== why) return undefined;
  const same = span.could.holders.filter((task) => holders.includes(task));
  if (same.length === 0 && holders.length > 0) return undefined;
  return { ...span, could: { why, holders: same } };
}

/** It ran in between, or an operator had a hand in it: what it waits for now is something else. */
function hasMoved(task: Task | undefined, within: (time: number) => boolean): boolean {
  if (task === undefined) return false;
  const times = [
    ...task.runs.flatMap(({ line, end }) => [line.at, end?.at ?? line.at]),
    ...task.accepted.map((outcome) => outcome.at),
    ...task.cancelling,
    ...task.retrying,
  ];
  return times.some(within);
}

/** Its type was paused or resumed in between, or a limit of it changed: it may have been held until then. */
function wasChanged(
  { pauses, changes }: History,
  type: string,
  task: Task | undefined,
  within: (time: number) => boolean,
): boolean {
  const names = new Set(task?.claims?.limits.map(nameOf));
  return (
    pauses.some(({ at, types }) => within(at) && types.includes(type)) ||
    changes.some(({ at, limit }) => within(at) && names.has(nameOf(limit)))
  );
}

/** Without a key. */
function nameOf(slot: string): string {
  return slot.split("/")[0]!;
}

/** Faults of all kinds, each with the time in which what it cost may still come back. */
function faultsOf({ history, terms }: Case): Window[] {
  const afterMs = terms.leaseMs + terms.recoverMs;
  const moment = (at: number): Window => ({ from: at, to: at, what: "ended" });
  const all = [...history.processes.values()].flatMap(({ windows, deaths, terminating }) => [
    ...windows,
    ...[...deaths, ...terminating].map(moment),
  ]);
  return [...all, ...history.turns].map(({ from, to, what }) => ({ from, to: to + afterMs, what }));
}

interface Could {
  /** In words. */
  readonly why: string;
  /** The tasks that hold what it waits for, and do not run. */
  readonly holders: readonly string[];
}

/** Whether a waiting task could run. Null if something holds it that runs, or that may take its time by design. */
export function couldRun({ type, first, reasons }: Waiting): Could | null {
  const [reason, ...more] = reasons;
  if (reason === undefined || more.length > 0) return null;
  const { kind, name, key = null, before = null, slots = 0, holders = [] } = reason;
  if (kind === "next") return first ? { why: "nothing holds it", holders: [] } : null;
  const what = [name ?? kind, key].filter((word) => word !== null).join("/");
  if (holders.length === 0) {
    // With a number of 0 there are no slots to hold, and those before it have the free ones next.
    const lost = before === 0 && (kind === "order" || slots > 0);
    return lost ? { why: `no slot of ${what} is free, and no task holds one`, holders: [] } : null;
  }
  // By design an order key waits for its head, items of a window keep their order, and so do tasks of a type at a key.
  const others = kind === "limit" && holders.some((holder) => holder.type !== type);
  if (!others || holders.some(({ runs }) => runs)) return null;
  const ids = holders.map(({ task }) => task);
  return { why: `no task that holds a slot of ${what} runs`, holders: ids };
}

function wordsFor(id: string, task: Task | undefined): string {
  return task === undefined ? `task ${id}` : named(task);
}
