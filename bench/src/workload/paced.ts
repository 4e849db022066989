import type { Cast } from "../cast.js";
import { pacedSubject, type Pace } from "../measure/paced.js";
import type { Reading, Workload } from "../workload.js";

const APART_MS = 20;
const WARM_UP = 20;
const TICK_MS = 10;

/** From the call of enqueue in one process to the begin of the handler in another that has nothing to do. */
export function latency(cast: Cast): Workload {
  const entrants = [cast.sluice("default"), cast.sluice("history off"), ...cast.peers("all")];
  const pace = { each: 1, everyMs: APART_MS, warmUp: WARM_UP };
  const about = `tasks ${APART_MS} ms apart, from enqueue to the start of the handler in an idle worker`;
  return {
    name: "latency",
    about: `${about}: p50`,
    unit: "ms",
    better: "less",
    sizing: { by: "count", tasks: 300, quick: 50 },
    base: null,
    subjects: entrants.map((entrant) => pacedSubject(entrant, pace)),
    readings: [p99Of("latency", about)],
  };
}

/** Enqueue and drain at a fixed rate: what a task waits while others come and go. */
export function sustained(cast: Cast): Workload[] {
  return [2_000, 10_000].map((perSecond) => {
    const name = `sustained-${perSecond}`;
    const about = `${perSecond.toLocaleString("en")} tasks a second enqueued and run, from enqueue to the start of the handler`;
    const pace = { each: (perSecond * TICK_MS) / 1_000, everyMs: TICK_MS, warmUp: perSecond / 10 };
    const entrants = [cast.sluice("history on"), ...cast.peers("tuned")];
    return {
      name,
      about: `${about}: p50`,
      unit: "ms",
      better: "less",
      sizing: { by: "rate", perSecond },
      base: null,
      subjects: entrants.map((entrant) => pacedSubject(entrant, pace)),
      readings: [p99Of(name, about)],
    };
  });
}

/** Whether three workers get a third each of a load that none of them is busy with. */
export function shares(cast: Cast): Workload {
  const perSecond = 1_000;
  const each = (perSecond * TICK_MS) / 1_000;
  const pace: Pace = {
    each,
    everyMs: TICK_MS,
    warmUp: perSecond / 10,
    processes: 3,
    value: "smallest share",
  };
  const entrants = [cast.sluice("default"), ...cast.peers("tuned")];
  return {
    name: "shares",
    about: "1,000 tasks a second for three workers: the smallest share of a worker",
    unit: "%",
    better: "more",
    sizing: { by: "rate", perSecond },
    base: { ideal: 100 / 3, words: "a third" },
    subjects: entrants.map((entrant) => pacedSubject(entrant, pace)),
  };
}

function p99Of(name: string, about: string): Reading {
  return { workload: `${name}-p99`, about: `${about}: p99`, fact: "p99Ms", unit: "ms" };
}
