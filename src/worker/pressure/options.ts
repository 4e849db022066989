import { resolveWithin, type Layers } from "../../config/resolve.js";

/** From which value on each signal makes claims smaller; `false` turns a signal off. */
export interface PressureOptions {
  /**
   * Memory in use, in percent of the tightest bound: the cgroup's limit, or the host's memory where there
   * is none, and the limit of V8's heap. Above it claims are halved. Default 80, from 1 to 99.
   */
  readonly memoryPercentMax?: number | false | undefined;
  /**
   * The p99 of how long tasks took in the last minute, in milliseconds. Above it claims are 0.7 of their
   * size. Default 30,000, from 1 to 86,400,000. What is long depends on the tasks: set it to some times
   * what yours should take, or turn it off where minutes are normal.
   */
  readonly taskDurationP99MsMax?: number | false | undefined;
  /**
   * How late the event loop comes round, in milliseconds: the p99 of half a second, again and again. Above
   * it claims are 0.7 of their size. Default 200, from 10 to 60,000.
   */
  readonly eventLoopDelayMsMax?: number | false | undefined;
}

/** Every threshold decided; null: turned off. */
export type PressureThresholds = Readonly<Record<keyof PressureOptions, number | null>>;

/** Checks what was given, and takes what is left out from elsewhere. */
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
