import { SluiceError } from "../core/error.js";
import { checkInteger } from "../core/number.js";
import { checkOneOf, checkOptions } from "../core/option.js";
import type { TaskTerms } from "../core/terms.js";

/** What can go wrong with one execution of a task. */
export type FaultKind = "crash" | "stall" | "lose-lease" | "cut-claim" | "cut-completion";

/** Something that goes wrong with the next executions of a type of task. Made by crash, stall, loseLease and cutReply. */
export interface Fault {
  readonly kind: FaultKind;
  readonly task: Pick<TaskTerms, "type" | "queue">;
  readonly times: number;
}

/** How often a fault strikes: with the first so many executions. */
export interface FaultOptions {
  /** Default 1. */
  readonly times?: number;
}

type AnyTask = Pick<TaskTerms, "type" | "queue">;

/**
 * The process dies after the handler's last line, before its outcome is recorded: all its effects
 * are there and nobody knows. The lease runs out, the task is taken back and runs again. A crash uses
 * up no attempt; the third makes the task a suspect, which runs alone, and the fourth fails it as `poisoned`.
 */
export function crash(task: AnyTask, options?: FaultOptions): Fault {
  return fault("crash", task, options);
}

/**
 * The process stands still for longer than its lease and then goes on as if nothing had happened: the
 * task was taken back before the handler began. The handler runs to its end, its signal says nothing,
 * and the database refuses its outcome. Counts as a crash.
 */
export function stall(task: AnyTask, options?: FaultOptions): Fault {
  return fault("stall", task, options);
}

/**
 * The lease is lost while the handler runs, and the worker knows: ctx.signal aborts when the handler
 * first waits for something, and whatever it does from then on is not recorded. Counts as a crash.
 */
export function loseLease(task: AnyTask, options?: FaultOptions): Fault {
  return fault("lose-lease", task, options);
}

/**
 * The connection breaks after a commit and before the reply. "completion": the outcome is recorded
 * and the worker does not hear it; a ctx.transaction rejects although it has committed. "claim": the
 * task is claimed by nobody who knows; it is handed back before its handler has run.
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

// Only what was checked at the door can strike.
const made = new WeakSet<Fault>();

/** The faults of one drain, and how often each has still to strike. */
export class FaultPlan {
  readonly #left: { readonly fault: Fault; left: number }[];

  constructor(faults: readonly Fault[]) {
    if (!Array.isArray(faults) || !faults.every((f) => made.has(f as Fault))) {
      throw new SluiceError(
        "invalid_option",
        "faults is a list of crash(task), stall(task), loseLease(task) and cutReply(task)",
        { details: { option: "faults" } },
      );
    }
    this.#left = faults.map((fault) => ({ fault, left: fault.times }));
  }

  /** What goes wrong with this execution, if anything: the first fault of its type that has not struck often enough. */
  next({ type, queue }: AnyTask): FaultKind | null {
    const found = this.#left.find(
      ({ fault: { task }, left }) => left > 0 && task.type === type && task.queue === queue,
    );
    if (found === undefined) return null;
    found.left--;
    return found.fault.kind;
  }

  /** A fault that did not happen proves nothing about the handler it was meant for. */
  refuseLeft(): void {
    const idle = this.#left.find(({ left }) => left > 0);
    if (idle === undefined) return;
    const { fault, left } = idle;
    throw new SluiceError(
      "not_drained",
      `${fault.kind} of ${fault.task.type} was to happen ${fault.times} times, but ${left} of them did not: no task of that type was there to run`,
      { details: { fault: fault.kind, type: fault.task.type, left } },
    );
  }
}
