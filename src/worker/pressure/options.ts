import { resolveWithin, type Layers } from "../../config/resolve.js";

/** Thresholds above which each signal makes claims smaller; `false` turns a signal off. */
export interface PressureOptions {
  /**
   * Memory in use, in percent of the tightest bound: the cgroup's limit (or the host's memory if there is none) and
   * V8's heap limit. Above it, claims are halved. Default 80, from 1 to 99.
   */
  readonly memoryPercentMax?: number | false | undefined;
  /**
   * The p99 of task durations in the last minute, in milliseconds. Above it, claims shrink to 0.7 of their size.
   * Default 30,000, from 1 to 86,400,000. The right value depends on the tasks: set it to several times their expected
   * duration, or turn it off if minutes are normal.
   */
  readonly taskDurationP99MsMax?: number | false | undefined;
  /**
   * The event loop delay in milliseconds: the p99 of half a second, measured continuously. Above it, claims shrink to
   * 0.7 of their size. Default 200, from 10 to 60,000.
   */
  readonly eventLoopDelayMsMax?: number | false | undefined;
}

/** All thresholds, resolved. Null: turned off. */
export type PressureThresholds = Readonly<Record<keyof PressureOptions, number | null>>;

/** Checks the given options, and takes missing ones from the other sources of settings. */
export function resolvePressure(
  options: PressureOptions = {},
  layers: Layers = { env: {}, file: null },
): PressureThresholds {
  const values = resolveWithin("pressure", options, layers);
  const threshold = (value: number | false): number | null => (value === false ? null : value);
  return {
    memoryPercentMax: threshold(values.memoryPercentMax),
    taskDurationP99MsMax: threshold(values.taskDurationP99MsMax),
    eventLoopDelayMsMax: threshold(values.eventLoopDelayMsMax),
  };
}
