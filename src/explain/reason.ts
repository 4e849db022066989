import type { BareReason, Explanation, Holder, QueueReason, Reason, ReasonKind, Untold } from "../core/explanation.js";
import { quote } from "../core/quote.js";

type Of<Kind extends ReasonKind> = Untold<Extract<Reason, { kind: Kind }>>;
/** The task that a reason is about, and the time. */
export type About = Pick<Explanation, "type" | "queue" | "at" | "attempt" | "attemptsMax" | "error">;

/** The text of each reason; "it" stands for the task. */
const WORDS: { readonly [Kind in ReasonKind]: (reason: Of<Kind>, about: About) => string } = {
  scheduled: ({ until }, { at, attempt, attemptsMax, error }) =>
    `it is scheduled for ${moment(until, at)}${attempt === 0 ? "" : `, after ${attempts(attempt, attemptsMax)}`}` +
    (error === null ? "" : `; the last one failed: ${error}`),
  order: ({ holder, ...key }, { at }) =>
    (holder === null
      ? `${keyText(key)} is free and goes to the first task in line`
      : `${keyText(key)} is held by ${holderText(holder, at)}`) + beforeText(key.before),
  blocked: ({ holder, ...key }, { at }) =>
    `${keyText(key)} is blocked by task ${holder.task} (${holder.type}), ` +
    `which failed at ${moment(holder.since ?? at, at)}: sluice.retry("${holder.task}") runs it again, ` +
    `sluice.unblock("${holder.task}") continues without it${beforeText(key.before)}`,
  limit: (reason, { at }) => {
    const key = reason.key === null ? "" : ` for key ${quote(reason.key)}`;
    return `limit ${quote(reason.limit)}${key} is ${slotsText(reason, at)}`;
  },
  window: (reason, { at }) =>
    `the window of node ${quote(reason.node)} in run ${reason.run} is ${slotsText(reason, at)}`,
  children: ({ runs }) => `it waits for its fan-out to end: run ${runs.join(", ")}`,
  suspect: ({ crashes, worker }) =>
    `its worker crashed ${times(crashes, "time")} while it ran, so it has to run alone: ` +
    (worker === null
      ? "a worker will finish its other tasks first"
      : `worker ${quote(worker)} finishes its other tasks first`),
  stopping: ({ run }) => `run ${run} is cancelling its remaining tasks, including this one`,
  paused: ({ what, name }) => `${what} ${what === "queue" ? quote(name) : name} is paused`,
  noWorker: ({ leaving, elsewhere }, { type, queue }) =>
    `no live worker serves ${quote(type)} in queue ${quote(queue)}` +
    (leaving === 0 ? "" : ` (${leaving} ${leaving === 1 ? "is" : "are"} shutting down)`) +
    (elsewhere.length === 0 ? "" : `; it is served in queue ${elsewhere.map(quote).join(", ")}`),
  silent: ({ workers, heardAt }, { at }) =>
    `${of(workers)} that could run it ${workers === 1 ? "has" : "have"} been silent since ${moment(heardAt, at)}: ` +
    "dead, disconnected, or with a blocked event loop",
  pressure: ({ workers, reasons }) =>
    `${of(workers)} that could run it ${workers === 1 ? "does" : "do"} not claim now: ${reasons.join(", ")}`,
  busy: ({ workers, capacity, before }) =>
    `${of(workers)} that could run it ${workers === 1 ? "is" : "are"} full: ` +
    `at most ${times(capacity, "task")} at once${beforeText(before)}`,
  next: ({ before }) =>
    before === 0 ? "nothing holds it: it is claimed next" : `nothing holds it${beforeText(before)}`,
};

export function reasonText(reason: BareReason, about: About): string {
  const tell = WORDS[reason.kind] as (reason: BareReason, about: About) => string;
  return tell(reason, about);
}

/** Describes how a task is running, or how it has ended. */
export function stateText(explained: Omit<Explanation, "message">): string {
  const { state, at, execution, finishedAt, attempt, attemptsMax, error, blocks } = explained;
  if (execution === null) {
    const when = finishedAt === null ? "" : ` at ${moment(finishedAt, at)}`;
    if (state === "cancelled") return `it was cancelled${when}`;
    if (state !== "failed") return `it has ${state}${when}`;
    return (
      `it failed${when}, after ${attempts(attempt, attemptsMax)}${error === null ? "" : `: ${error}`}` +
      (blocks === null ? "" : `; it blocks ${keyText(blocks)}, with ${times(blocks.behind, "task")} behind it`)
    );
  }
  const { worker, since, silent, heardAt, lost, stopping } = execution;
  return (
    `it has been running since ${moment(since, at)} ` +
    (worker === null ? "on a worker that is gone" : `on worker ${quote(worker)}`) +
    (silent && heardAt !== null ? `, which has been silent since ${moment(heardAt, at)}` : "") +
    (lost ? "; the lease has expired, and the task will be claimed again" : "") +
    (stopping ? "; it was asked to stop" : "")
  );
}

const QUEUE_WORDS: Record<ReasonKind, string> = {
  scheduled: "scheduled for later",
  order: "behind another task of their order key",
  blocked: "behind a failed task that blocks their order key",
  limit: "waiting at a limit",
  window: "waiting at the window of a fan-out",
  children: "waiting for their fan-outs to end",
  suspect: "waiting to run alone, after crashes",
  stopping: "being cancelled by their run",
  paused: "in a paused queue or run",
  noWorker: "without a live worker",
  silent: "waiting for workers that missed a heartbeat",
  pressure: "waiting for workers that do not claim now",
  busy: "waiting for workers that are full",
  next: "next in line",
};

export function queueReasonText(reason: Omit<QueueReason, "message">, at: Date): string {
  const { kind, type, limit, slots, used, keys, until, count, more, task } = reason;
  const numbers = slots === null ? "" : slots === 0 ? ", which is set to 0" : ` (${used} of ${slots} in use)`;
  const held = limit === null ? QUEUE_WORDS[kind] : `at limit ${quote(limit)}${numbers}`;
  const at_ = keys === null ? "" : ` (${times(keys, kind === "window" ? "window" : "key")})`;
  const due = until === null ? "" : `, the first at ${moment(until, at)}`;
  return `${count}${more ? " or more" : ""} ${quote(type)} ${held}${at_}${due}; for example task ${task}`;
}

function keyText({ key, scope }: { readonly key: string; readonly scope: string | null }): string {
  return `order key ${quote(key)}${scope === null ? "" : ` of scope ${quote(scope)}`}`;
}

function holderText({ task, type, state, since, worker, reason }: Holder, at: Date): string {
  const how = since === null ? state : `${state} since ${moment(since, at)}`;
  const held = reason === null ? "" : `, because ${reason.message}`;
  return `task ${task} (${type}, ${how}${worker === null ? "" : ` on ${worker}`}${held})`;
}

function slotsText({ slots, used, holders, before }: Of<"limit"> | Of<"window">, at: Date): string {
  const [first] = holders;
  const others = used > 1 ? ` and ${used - 1} more` : "";
  const held = first === undefined ? "" : `, held by ${holderText(first, at)}${others}`;
  return `${fullText(slots, used)}${held}${beforeText(before)}`;
}

function fullText(slots: number, used: number): string {
  if (slots === 0) return `set to 0${used === 0 ? "" : `, with ${used} still in use`}`;
  if (used < slots) return `free for the first task in line: ${used} of ${slots} in use`;
  if (used > slots) return `full: ${used} in use after it was lowered to ${slots}`;
  return `full: ${used} of ${slots} in use`;
}

/** Tasks ahead in line are counted up to this number. */
const COUNTED_MAX = 10_000;

function beforeText(before: number | null): string {
  if (before === null || before === 0) return "";
  const more = before >= COUNTED_MAX ? " or more" : "";
  return `; ${before}${more} ${before === 1 ? "task is" : "tasks are"} ahead of it`;
}

function attempts(used: number, max: number): string {
  return `${used} of ${times(max, "attempt")}`;
}

function times(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

function of(workers: number): string {
  return workers === 1 ? "the worker" : `the ${workers} workers`;
}

const UNITS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
  [1, "s"],
] as const;

/** Formats a time and its distance from now. */
function moment(time: Date, now: Date): string {
  const seconds = Math.round(Math.abs(time.getTime() - now.getTime()) / 1_000);
  const [size, unit] = UNITS.find(([of]) => seconds >= of) ?? UNITS[3];
  const far = `${Math.floor(seconds / size)} ${unit}`;
  return `${time.toISOString()} (${time > now ? `in ${far}` : `${far} ago`})`;
}
