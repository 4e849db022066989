import { SluiceError } from "../core/error.js";
import { checkInteger } from "../core/number.js";
import { checkOptions } from "../core/option.js";
import type { Logger } from "../core/ports.js";
import { within } from "../core/within.js";
import type { History } from "../keeper/keeper.js";
import type { Database } from "../postgres/database.js";
import { inspect } from "../postgres/inspect.js";
import type { Connection } from "../postgres/connection.js";
import { unservedTypes } from "../postgres/rehearse.js";
import type { ClaimedTask } from "../postgres/step.js";
import type { PlaceCrew } from "../runs/place.js";
import type { AnyHandler } from "../worker/execution.js";
import { FaultPlan, type Fault, type FaultKind } from "./faults.js";
import type { Hand, Sent } from "./hand.js";
import { dueNow, lookAround, nextDueMs, tidyUp } from "./keep.js";
import type { Play } from "./play.js";

/**
 * The outcome of one execution.
 * - `retry` and `snooze`: the task runs again later.
 * - `waiting`: the task runs again when the items of its ctx.map are over.
 * - `crashed`, `lease_lost` and `refused`: a fault was injected, nothing was recorded, and the task runs again.
 * - `released`: the task was handed back.
 */
export type ExecutionOutcome =
  | "succeeded"
  | "failed"
  | "cancelled"
  | "retry"
  | "snooze"
  | "waiting"
  | "released"
  | "crashed"
  | "lease_lost"
  | "refused";

/** One execution of a drain. */
export interface DrainedExecution {
  readonly id: string;
  readonly type: string;
  readonly queue: string;
  readonly attempt: number;
  readonly outcome: ExecutionOutcome;
  /** The error that the handler threw, if any. */
  readonly error: unknown;
  /** The fault injected into this execution, if any. */
  readonly fault: FaultKind | null;
}

/** The result of a drain. */
export interface Drained {
  /** The executions, in the order in which they ran. */
  readonly ran: readonly DrainedExecution[];
  /** How far the clock must move until something is due again, in ms; null if nothing ever is. */
  readonly nextDueMs: number | null;
  /** Types with unfinished tasks for which testSluice has no handler. */
  readonly unserved: readonly UnservedType[];
}

/** A type whose tasks a drain cannot run, because testSluice has no handler for it. */
export interface UnservedType {
  readonly type: string;
  readonly queue: string;
  /** Its oldest unfinished task; null if a workflow could not create it without the handler's contract. */
  readonly task: string | null;
}

/** Options of drain(). */
export interface DrainOptions {
  /** Faults to inject. A fault that finds no matching execution is an error. */
  readonly faults?: readonly Fault[];
  /**
   * Maximum number of executions. A drain that exceeds it fails: its tasks probably enqueue each other forever. Default
   * 1,000.
   */
  readonly executionsMax?: number;
  /** Maximum duration of one handler, in ms of real time. Default 4,000. */
  readonly handlerMsMax?: number;
}

interface DrainServices {
  readonly db: Database;
  readonly connection: Connection;
  readonly log: Logger;
  readonly hand: Hand;
  readonly handlers: ReadonlyMap<number, AnyHandler>;
  readonly history: History;
  readonly placing: PlaceCrew;
}

const EXECUTIONS_RANGE = { min: 1, max: 1_000_000 };
const HANDLER_MS_RANGE = { min: 1, max: 3_600_000 };
const LOOKS_MAX = 50;

/** Runs runnable tasks, one at a time, until none is left. */
export async function drain(services: DrainServices, options: DrainOptions): Promise<Drained> {
  const { plan, executionsMax, handlerMsMax } = checked(options);
  const { hand } = services;
  await hand.begin();
  try {
    await tidyUp(services);
    const ran: DrainedExecution[] = [];
    for (;;) {
      await dueNow(services);
      const task = await next(services);
      if (task === null) {
        const unserved = await unservedTypes(services.connection, [...services.handlers.keys()]);
        plan.refuseLeft(unserved);
        return { ran, nextDueMs: await nextDueMs(services), unserved };
      }
      if (ran.length === executionsMax) throw endless(ran);
      ran.push(await runOne(services, task, plan, handlerMsMax));
    }
  } finally {
    await hand.leave();
  }
}

function checked(options: DrainOptions) {
  checkOptions("drain", options, ["faults", "executionsMax", "handlerMsMax"]);
  const { faults = [], executionsMax = 1_000, handlerMsMax = 4_000 } = options;
  return {
    plan: new FaultPlan(faults),
    executionsMax: checkInteger("executionsMax", executionsMax, EXECUTIONS_RANGE),
    handlerMsMax: checkInteger("handlerMsMax", handlerMsMax, HANDLER_MS_RANGE),
  };
}

/** Claims the next task. Null if nothing is runnable, even after the checks that only a keeper makes. */
async function next(services: DrainServices): Promise<ClaimedTask | null> {
  const { hand } = services;
  for (let look = 0; look < LOOKS_MAX; look++) {
    const task = await hand.claim();
    if (task !== null) return task;
    if (!(await lookAround(services))) break;
  }
  return hand.claimSuspect();
}

async function runOne(
  services: DrainServices,
  task: ClaimedTask,
  plan: FaultPlan,
  handlerMsMax: number,
): Promise<DrainedExecution> {
  const { type, queue } = services.handlers.get(task.stream)!.contract;
  const fault = plan.next({ type, queue });
  const about = { id: task.claim.id, type, queue, attempt: task.attempt, fault };
  if (fault === "cut-claim") {
    await services.hand.doubt();
    return { ...about, outcome: "released", error: undefined };
  }
  if (fault === "stall") await services.hand.die();
  const run = services.hand.run(task, fault);
  if (!(await within(run, handlerMsMax))) throw stuck(handlerMsMax, about);
  const play = await run;
  return { ...about, ...(await outcomeOf(services, task, play)) };
}

async function outcomeOf(
  { db, hand }: DrainServices,
  { claim: { id } }: ClaimedTask,
  { fault, error }: Play,
): Promise<Pick<DrainedExecution, "outcome" | "error">> {
  if (fault === "crash" || fault === "lose-lease") {
    await hand.die();
    await hand.replace();
    // A task that no longer exists has succeeded, and its history is not kept.
    const completed = ((await inspect(db, id))?.state ?? "succeeded") === "succeeded";
    const outcome = fault === "crash" ? "crashed" : "lease_lost";
    return { outcome: completed ? "succeeded" : outcome, error };
  }
  const sent = await hand.settle(fault === "cut-completion");
  if (fault === "stall") {
    await hand.replace();
    return { outcome: "refused", error };
  }
  const outcome = await recorded(db, id, sent);
  // ctx.map throws to end an execution that waits; that is not an error.
  return { outcome, error: outcome === "waiting" ? undefined : (error ?? told(sent)) };
}

/**
 * The outcome that the database recorded: a retry may have been the last attempt, or a cancel may have been requested.
 */
async function recorded(db: Database, id: string, sent: Sent): Promise<ExecutionOutcome> {
  // Nothing was sent, because a transaction had recorded the success.
  if (sent.kind === "none" || (sent.kind === "success" && !sent.refused)) return "succeeded";
  const state = (await inspect(db, id))?.state ?? "succeeded";
  if (state === "succeeded" || state === "failed" || state === "cancelled") return state;
  if (sent.refused) return "refused";
  if (sent.kind === "wait") return "waiting";
  if (sent.kind === "snooze") return "snooze";
  return sent.kind === "release" ? "released" : "retry";
}

/** An input that does not fit its schema fails before a handler runs, so only the recorded outcome holds the error. */
function told({ kind, outcome }: Sent): unknown {
  const failed = kind === "retry" || kind === "invalid" || kind === "fail";
  return failed && outcome !== "" ? JSON.parse(outcome) : undefined;
}

function stuck(ms: number, { id, type }: { readonly id: string; readonly type: string }) {
  return new SluiceError(
    "not_drained",
    `the handler of ${type} (task ${id}) did not end within ${ms} ms of real time; its own timeout uses the ` +
      "test's clock, which moves only when the test moves it",
    { details: { id, type } },
  );
}

function endless(ran: readonly DrainedExecution[]): SluiceError {
  const last = ran.slice(-5).map(({ type, id }) => `${type} ${id}`);
  return new SluiceError(
    "not_drained",
    `${ran.length} tasks have run and there are more: do they enqueue each other forever, or retry without delay? ` +
      `The last were ${last.join(", ")}. Raise executionsMax to allow more`,
    { details: { ran } },
  );
}
