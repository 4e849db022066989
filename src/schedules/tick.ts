import { isSluiceError } from "../core/error.js";
import type { Logger } from "../core/ports.js";
import { dueSchedules, type DueSchedule, type Runner } from "../postgres/schedule.js";
import { fire, planOf } from "./fire.js";

const DUE_MAX = 500;
/** The longest delay before the next poll if no schedule could be advanced. */
const IDLE_POLL_MS = 1_000;

/** The result of one poll of the schedules. */
interface Ticked {
  /** The number of ticks enqueued by this process. */
  readonly ticks: number;
  /** The delay before the next poll. */
  readonly nextMs: number;
}

/**
 * Enqueues the ticks that are due. The leading keeper calls this. It is safe for several at once: each tick is enqueued
 * by exactly one of them.
 */
export async function tick(runner: Runner, log: Logger): Promise<Ticked> {
  const { due, nowMs, waitMs } = await dueSchedules(runner, DUE_MAX);
  let ticks = 0;
  let moved = false;
  for (const schedule of due) {
    const fired = await attempt(runner, log, schedule, nowMs);
    ticks += fired ?? 0;
    moved ||= fired !== null;
  }
  if (moved) return { ticks, nextMs: 0 };
  // A schedule that this process cannot advance must not cause a busy loop.
  return { ticks, nextMs: Math.min(waitMs ?? IDLE_POLL_MS, IDLE_POLL_MS) };
}

/** Returns how many ticks were enqueued, or null if this process did not advance the schedule. */
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
    if (dropped) log.warn("a schedule missed more ticks than it catches up on", { schedule });
    return ticks;
  } catch (e) {
    if (isSluiceError(e, "database_unavailable") || isSluiceError(e, "stopped")) throw e;
    // A schedule that cannot be enqueued, or whose time zone is unknown here, must not delay the others.
    return refused(e);
  }
}
