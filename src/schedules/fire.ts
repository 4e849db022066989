import { planTicks, type TickPlan } from "../core/schedule.js";
import { fireSchedule, type DueSchedule, type FireAnswer, type Runner } from "../postgres/schedule.js";
import { timetableOf } from "./timing.js";

const TICKS_MAX = 100;
const BYTES_MAX = 4 * 1024 * 1024;

/** The result of processing a due schedule. */
interface Fired extends FireAnswer {
  readonly ticks: number;
  readonly dropped: boolean;
}

/**
 * Enqueues the due ticks of a schedule and advances it. Any number of processes may do so at once: each computes from
 * the same row and the same clock, and only one of them writes.
 */
export async function fire(
  runner: Runner,
  seen: Pick<DueSchedule, "name" | "revision">,
  plan: TickPlan,
): Promise<Fired> {
  const ticks = plan.ticks.map((ms) => new Date(ms));
  const reply = await fireSchedule(runner, seen, ticks, new Date(plan.nextAtMs));
  return { ...reply, ticks: ticks.length, dropped: plan.dropped };
}

/** Plans few enough ticks at once to keep the statement small. Throws if this process cannot resolve the time zone. */
export function planOf(seen: DueSchedule, nowMs: number): TickPlan {
  const fitting = Math.floor(BYTES_MAX / Math.max(1, seen.inputBytes));
  const ticksMax = Math.max(1, Math.min(TICKS_MAX, fitting));
  const { missed, nextAtMs } = seen;
  return planTicks(timetableOf(seen), { missed, nextAtMs, nowMs, ticksMax });
}
