import type {
  BareReason,
  Explanation,
  Holder,
  QueueReason,
  Reason,
  ReasonKind,
  Untold,
} from "../core/explanation.js";
import { quote } from "../core/quote.js";

type Of<Kind extends ReasonKind> = Untold<Extract<Reason, { kind: Kind }>>;
/** Where a task is at home. */
interface Home {
  readonly type: string;
  readonly queue: string;
}

/** Each reason in words, about "it". */
const WORDS: { readonly [Kind in ReasonKind]: (reason: Of<Kind>, home: Home) => string } = {
  scheduled: ({ until, attempt }) =>
    `it is to run at ${until.toISOString()}${attempt === 0 ? "" : `, after ${times(attempt, "attempt")}`}`,
  order: ({ key, holder, before }) =>
    `order key ${quote(key)} ${orderText(holder)}${beforeText(before)}`,
  limit: (reason) => {
    const key = reason.key === null ? "" : ` for key ${quote(reason.key)}`;
    return `limit ${quote(reason.limit)}${key} is ${slotsText(reason)}`;
  },
  window: (reason) =>
    `the window of node ${quote(reason.node)} in run ${reason.run} is ${slotsText(reason)}`,
  children: ({ runs }) => `it waits for the end of what it fanned out: run ${runs.join(", ")}`,
  suspect: ({ crashes, worker }) =>
    `its worker died ${times(crashes, "time")} with it in hand, so it is to run alone: ` +
    (worker === null
      ? "a worker will empty itself for it"
      : `worker ${quote(worker)} empties itself for it`),
  stopping: ({ run }) => `run ${run} gives up the rest of its tasks, and this is one of them`,
  paused: ({ what, name }) => `${what} ${what === "queue" ? quote(name) : name} is paused`,
  noWorker: ({ leaving }, { type, queue }) =>
    `no live worker serves ${quote(type)} in queue ${quote(queue)}${leaving === 0 ? "" : ` (${leaving} about to leave)`}`,
  pressure: ({ workers, reasons }) =>
    `${all(workers)} that could run it claim${workers === 1 ? "s" : ""} nothing just now: ${reasons.join(", ")}`,
  busy: ({ workers, capacity }) =>
    `${all(workers)} that could run it ${workers === 1 ? "has" : "have"} no room: ${capacity} in hand`,
  next: ({ before }) =>
    before === 0
      ? "nothing holds it: it is the next to be claimed"
      : `nothing holds it: ${many(before)} before it in line`,
};

export function reasonText(reason: BareReason, home: Home): string {
  const tell = WORDS[reason.kind] as (reason: BareReason, home: Home) => string;
  return tell(reason, home);
}

/** How a task runs, or that it is over. */
export function stateText({ state, run }: Pick<Explanation, "state" | "run">): string {
  if (run === null) return state === "cancelled" ? "it was cancelled" : `it has ${state}`;
  const where = run.worker === null ? "on a worker that is gone" : `on worker ${quote(run.worker)}`;
  return (
    `it runs ${where} since ${run.since.toISOString()}` +
    (run.lost ? "; the lease is over, and it comes back to the line" : "") +
    (run.stopping ? "; it was asked to stop" : "")
  );
}

const QUEUE_WORDS: Record<ReasonKind, string> = {
  scheduled: "scheduled for later",
  order: "behind another of their order key",
  limit: "at a limit",
  window: "at the window of a fan-out",
  children: "waiting for the end of what they fanned out",
  suspect: "to run alone, after crashes",
  stopping: "given up",
  paused: "in a queue that is paused",
  noWorker: "without a live worker",
  pressure: "before workers that claim nothing just now",
  busy: "before workers that have no room",
  next: "next in line",
};

export function queueReasonText(reason: Omit<QueueReason, "message">): string {
  const { kind, type, limit, slots, used, count, more, task } = reason;
  const out = slots === null ? "" : `, ${used} of ${slots} out`;
  const at = limit === null ? QUEUE_WORDS[kind] : `at limit ${quote(limit)}${out}`;
  return `${count}${more ? " or more" : ""} of ${quote(type)} ${at}; one is task ${task}`;
}

function orderText(holder: Holder | null): string {
  if (holder === null) return "is held by another";
  if (holder.state === "failed")
    return `is blocked by task ${holder.task}, which has failed: retry it, or unblock the key`;
  return `is held by ${holderText(holder)}`;
}

function holderText({ task, type, state, since, worker }: Holder): string {
  const how = since === null ? state : `${state} since ${since.toISOString()}`;
  return `task ${task} (${type}, ${how}${worker === null ? "" : ` on ${worker}`})`;
}

function slotsText({ slots, used, holders, before }: Of<"limit"> | Of<"window">): string {
  const [first] = holders;
  const others = used > 1 ? ` and ${used - 1} more` : "";
  const held = first === undefined ? "" : `, held by ${holderText(first)}${others}`;
  const state = slots === 0 ? "set to 0" : "full";
  return `${state}: ${used} of ${slots} out${held}${beforeText(before)}`;
}

function beforeText(before: number | null): string {
  return before === null || before === 0 ? "" : `; ${many(before)} before it in line`;
}

/** Lines are counted up to here. */
const COUNTED_MAX = 10_000;

function many(n: number): string {
  return `${n}${n >= COUNTED_MAX ? " or more" : ""} ${n === 1 ? "is" : "are"}`;
}

function times(n: number, what: string): string {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

function all(workers: number): string {
  return workers === 1 ? "the one worker" : `all ${workers} workers`;
}
