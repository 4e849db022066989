import type { Cast } from "../cast.js";
import { drainSubject } from "../measure/drain.js";
import type { Entrant, Workload } from "../workload.js";

const NOTHING_SET = "nothing set";

/** A backlog of no-ops, from one and from two processes. */
export function drains(cast: Cast): Workload[] {
  const ours = [cast.sluice("history on"), cast.sluice("history off")];
  return [
    workload(1, [...ours, cast.sluice("default"), ...cast.pureSql("all"), ...cast.peers("all")]),
    workload(2, [...ours, cast.sluice("default"), ...cast.pureSql("one"), ...cast.peers("tuned")]),
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

/** What a preset makes of a backlog of no-ops, beside a worker with nothing set. */
export function presets(cast: Cast): Workload {
  const names = ["preset high", "preset io", "preset throughput"] as const;
  const drain = { shape: {} };
  return {
    name: "presets",
    about: "a backlog of no-ops drained by one process with a preset",
    unit: "tasks/s",
    better: "more",
    sizing: { by: "seconds" },
    base: { subject: NOTHING_SET },
    subjects: [
      drainSubject(cast.sluice("default"), drain, NOTHING_SET),
      ...names.map((name) => drainSubject(cast.sluice(name), drain, name)),
    ],
  };
}
