import type { ScheduleStatus } from "../../postgres/schedule.js";

/** When a schedule ticks. */
export function timingText({ cron, timeZone, everyMs }: ScheduleStatus): string {
  return cron === null ? `every ${everyMs} ms` : `${cron} (${timeZone})`;
}

/** Whether a schedule ticks, and if not, why. */
export function stateText({ paused, enabled, trouble }: ScheduleStatus): string {
  if (paused) return "paused";
  if (!enabled) return "disabled in code";
  return trouble === null ? "ticking" : "in trouble";
}
