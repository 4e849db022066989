import { isSluiceError } from "../core/error.js";
import type { Logger } from "../core/ports.js";
import { dueSchedules, type DueSchedule, type Runner } from "../postgres/schedule.js";
import { fire, planOf } from "./fire.js";

const DUE_MAX = 500;
/** A schedule that was set elsewhere is seen no later than this. */
const LOOK_INTERVAL_MS = 1_000;

/** What a look at the schedules came to. */
interface Ticked {
  /** Ticks that were enqueued here. */
  readonly ticks: number;
  /** When to look again. */
  readonly nextMs: number;
}

/** Enqueues the ticks that have come due. Every process does this; each tick is enqueued by one of them. */
export async function tick(runner: Runner, log: Logger): Promise<Ticked> {
  const { due, nowMs, waitMs } = await dueSchedules(runner, DUE_MAX);
  let ticks = 0;
  let moved = false;
  for (const schedule of due) {
    const fired = await attempt(runner, log, schedule, nowMs);
    ticks += fired ?? 0;
    moved ||= fired !== null;
  }
  // One that we cannot move must not make us look all the time.
  if (moved) return { ticks, nextMs: 0 };
  return { ticks, nextMs: Math.min(waitMs ?? LOOK_INTERVAL_MS, LOOK_INTERVAL_MS) };
}

/** How many ticks were enqueued, or null if it was not us who moved the schedule on. */
async function attempt(runner: Runner, log: Logger, seen: DueSchedule, nowMs: number): Promise<number | null> {
  const schedule = seen.name;
  const refused = (error: unknown): null => {
    log.warn("a schedule's tick could not be enqueued", { schedule, error: String(error) });
    return null;
  };
  try {
    const { answer, trouble, ticks, dropped } = await fire(runner, seen, planOf(seen, nowMs));
    if (answer === "refused") return refused(trouble);
    if (answer === "taken") return null;
    if (dropped) log.warn("a schedule missed more ticks than are made up for", { schedule });
    return ticks;
  } catch (e) {
    if (isSluiceError(e, "database_unavailable") || isSluiceError(e, "stopped")) throw e;
    // One that cannot be enqueued, or whose time zone is not known here, must not keep the others waiting.
    return refused(e);
  }
}
