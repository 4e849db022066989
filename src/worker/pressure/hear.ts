import type { Meter } from "../metrics/meter.js";
import type { Pressure } from "./pressure.js";

/** A meter that also reports task durations to pressure, except for tasks that were released or lost. */
export function heardBy(pressure: Pick<Pressure, "ended">, meter: Meter): Meter {
  return {
    claimed: (tasks, tookMs) => meter.claimed(tasks, tookMs),
    queued: (waitMs) => meter.queued(waitMs),
    passed: (limits) => meter.passed(limits),
    stepFailed: () => meter.stepFailed(),
    waited: (pool, ms) => meter.waited(pool, ms),
    started: (nowMs) => meter.started(nowMs),
    ended: (stream, ending, startedMs, nowMs) => {
      meter.ended(stream, ending, startedMs, nowMs);
      if (ending !== "released" && ending !== "lost") pressure.ended(nowMs - startedMs);
    },
    completed: (tasks) => meter.completed(tasks),
    refused: (tasks) => meter.refused(tasks),
    answered: (items, nowMs) => meter.answered(items, nowMs),
  };
}
