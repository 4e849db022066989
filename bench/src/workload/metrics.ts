import type { Cast } from "../cast.js";
import { drainSubject } from "../measure/drain.js";
import type { Workload } from "../workload.js";

const OFF = "metrics off";
// The difference is small: a longer drain tells it from chance.
const TIMES = 2;

/** What counting costs, and what it costs to be asked for it every second: Sluice against itself. */
export function metrics(cast: Cast): Workload {
  return {
    name: "metrics",
    about: "a backlog of no-ops drained by a worker with metrics on, and by one with metrics off",
    unit: "tasks/s",
    better: "more",
    sizing: { by: "seconds", alike: true, times: TIMES },
    base: { subject: OFF },
    subjects: [
      drainSubject(cast.sluice("metrics off"), { shape: {} }, OFF),
      drainSubject(cast.sluice("history on"), { shape: {} }, "metrics on"),
      drainSubject(cast.sluice("metrics read"), { shape: {} }, "metrics on, read each second"),
    ],
  };
}
