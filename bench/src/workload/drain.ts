import type { Cast } from "../cast.js";
import { drainSubject } from "../measure/drain.js";
import type { Entrant, Workload } from "../workload.js";

/** A backlog of no-ops, from one and from two processes. */
export function drains(cast: Cast): Workload[] {
  const ours = [cast.sluice("history on"), cast.sluice("history off")];
  return [
    workload(1, [...ours, cast.sluice("default"), ...cast.pureSql("all"), ...cast.peers("all")]),
    workload(2, [...ours, ...cast.pureSql("one"), ...cast.peers("tuned")]),
  ];
}

function workload(processes: number, entrants: readonly Entrant[]): Workload {
  return {
    name: `drain-${processes}`,
    about: `a backlog of no-ops drained by ${processes === 1 ? "one process" : "two processes"}`,
    unit: "tasks/s",
    better: "more",
    sizing: { by: "seconds" },
    base: null,
    subjects: entrants.map((entrant) => drainSubject(entrant, { shape: {}, processes })),
  };
}
