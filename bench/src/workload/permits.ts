import type { Cast } from "../cast.js";
import { drainSubject } from "../measure/drain.js";
import { heldSubject } from "../measure/held.js";
import type { Workload } from "../workload.js";

const PERMITS = 1_000;
const SLEEP_MS = 50;
const TASKS = 5_000;
const IN_FLIGHT = 10_000;

/** How well the permits of one worker are used: five rounds of 50 ms if they are all used all the time. */
export function permits(cast: Cast): Workload {
  const drain = {
    shape: {},
    work: { sleepMs: SLEEP_MS },
    permits: PERMITS,
    value: "ms",
  } as const;
  return {
    name: "permits",
    about: "5,000 tasks of 50 ms with 1,000 permits",
    unit: "ms",
    better: "less",
    sizing: { by: "count", tasks: TASKS },
    base: { ideal: (TASKS / PERMITS) * SLEEP_MS, words: "the ideal" },
    subjects: [cast.sluice("history on"), ...cast.peers("tuned")].map((entrant) => drainSubject(entrant, drain)),
  };
}

/** The memory of a process that holds 10,000 tasks at once. */
export function inFlight(cast: Cast): Workload {
  return {
    name: "in-flight",
    about: "10,000 tasks in flight on one worker: the largest RSS of the process",
    unit: "MB",
    better: "less",
    sizing: { by: "count", tasks: IN_FLIGHT },
    base: null,
    subjects: [cast.sluice("history on"), ...cast.peers("tuned")].map((e) => heldSubject(e)),
  };
}
