import { planTicks, type TickPlan } from "../core/schedule.js";
import { fireSchedule, type DueSchedule, type FireAnswer, type Runner } from "../postgres/schedule.js";
import { timetableOf } from "./timing.js";

const TICKS_MAX = 100;
const BYTES_MAX = 4 * 1024 * 1024;

/** What was done about a schedule whose time had come. */
interface Fired extends FireAnswer {
  readonly ticks: number;
  readonly dropped: boolean;
}

/**
 * Enqueues the ticks that a schedule owes and moves it on. Any number of processes may do so at once:
 * what each of them computes rests on the same row and the same clock, and one of them gets to write.
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

/** So many at once that no statement is large. Throws where this process cannot tell its time zone. */
export function planOf(seen: DueSchedule, nowMs: number): TickPlan {
  const fitting = Math.floor(BYTES_MAX / Math.max(1, seen.inputBytes));
  const ticksMax = Math.max(1, Math.min(TICKS_MAX, fitting));
  const { missed, nextAtMs } = seen;
  return planTicks(timetableOf(seen), { missed, nextAtMs, nowMs, ticksMax });
}
