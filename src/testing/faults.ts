import { SluiceError } from "../core/error.js";
import { checkInteger } from "../core/number.js";
import { checkOneOf, checkOptions } from "../core/option.js";
import type { TaskTerms } from "../core/terms.js";

/** The faults that can be injected into an execution of a task. */
export type FaultKind = "crash" | "stall" | "lose-lease" | "cut-claim" | "cut-completion";

/** A fault to inject into the next executions of a task type. Created by crash, stall, loseLease and cutReply. */
export interface Fault {
  readonly kind: FaultKind;
  readonly task: Pick<TaskTerms, "type" | "queue">;
  readonly times: number;
}

/** Options of a fault. */
export interface FaultOptions {
  /** Number of executions to inject the fault into, from the first on. Default 1. */
  readonly times?: number;
}

type AnyTask = Pick<TaskTerms, "type" | "queue">;

/**
 * The process dies after the handler's last line, before its outcome is recorded: all side effects have happened, but
 * no outcome is on record. The lease expires, and the task is reclaimed and runs again. A crash uses up no attempt. The
 * third crash makes the task a suspect, which runs alone; the fourth fails it as `poisoned`.
 */
export function crash(task: AnyTask, options?: FaultOptions): Fault {
  return fault("crash", task, options);
}

/**
 * The process freezes for longer than its lease and then continues as if nothing had happened: the task was reclaimed
 * before the handler began. The handler runs to its end, its signal does not abort, and the database refuses its
 * outcome. Counts as a crash.
 */
export function stall(task: AnyTask, options?: FaultOptions): Fault {
  return fault("stall", task, options);
}

/**
 * The worker loses its lease while the handler runs, and detects it: ctx.signal aborts when the handler first awaits
 * something, and nothing the handler does from then on is recorded. Counts as a crash.
 */
export function loseLease(task: AnyTask, options?: FaultOptions): Fault {
  return fault("lose-lease", task, options);
}

/**
 * The connection breaks after a commit and before its reply.
 * - "completion": the outcome is recorded, but the worker gets no reply; a ctx.transaction rejects although it has
 *   committed.
 * - "claim": the task is claimed, but the worker never receives it; it is released before its handler has run.
 */
export function cutReply(task: AnyTask, of: "completion" | "claim" = "completion", options?: FaultOptions): Fault {
  const reply = checkOneOf("cutReply", of, ["completion", "claim"]);
  return fault(`cut-${reply}`, task, options);
}

const TIMES_RANGE = { min: 1, max: 1000 };

function fault(kind: FaultKind, task: AnyTask, options: FaultOptions = {}): Fault {
  checkOptions(kind, options, ["times"]);
  if (typeof (task as Partial<AnyTask> | null)?.type !== "string")
    throw new SluiceError("unknown_task", "a fault needs a task made by task(name, options)");
  const { type, queue } = task;
  const times = checkInteger("times", options.times ?? 1, TIMES_RANGE);
  const one: Fault = Object.freeze({ kind, task: { type, queue }, times });
  made.add(one);
  return one;
}

// Only faults created, and thereby checked, by the functions above are accepted.
const made = new WeakSet<Fault>();

/** The faults of one drain, and how often each must still be injected. */
export class FaultPlan {
  readonly #left: { readonly fault: Fault; left: number }[];

  constructor(faults: readonly Fault[]) {
    if (!Array.isArray(faults) || !faults.every((f) => made.has(f as Fault))) {
      throw new SluiceError(
        "invalid_option",
        "faults must be a list of crash(task), stall(task), loseLease(task) and cutReply(task)",
        { details: { option: "faults" } },
      );
    }
    this.#left = faults.map((fault) => ({ fault, left: fault.times }));
  }

  /** The fault to inject into this execution, if any: the first fault for its type that has injections left. */
  next({ type, queue }: AnyTask): FaultKind | null {
    const found = this.#left.find(
      ({ fault: { task }, left }) => left > 0 && task.type === type && task.queue === queue,
    );
    if (found === undefined) return null;
    found.left--;
    return found.fault.kind;
  }

  /** Rejects faults that were never injected: they prove nothing about the handler they were meant for. */
  refuseLeft(unserved: readonly (AnyTask & { readonly task: string | null })[]): void {
    const idle = this.#left.find(({ left }) => left > 0);
    if (idle === undefined) return;
    const { fault, left } = idle;
    const { type, queue } = fault.task;
    const found = unserved.find((one) => one.type === type && one.queue === queue);
    const why =
      found === undefined
        ? "no other task of that type could run"
        : `${found.task === null ? "a workflow needs it" : `task ${found.task} exists`}, but testSluice has no handler for ${type}`;
    throw new SluiceError(
      "not_drained",
      `${fault.kind} of ${type} was set to happen ${fault.times} times, but ${left} of them did not: ${why}`,
      { details: { fault: fault.kind, type, left } },
    );
  }
}
