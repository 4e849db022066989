import type { Cast } from "../cast.js";
import { enqueueSubject, type Enqueuing } from "../measure/enqueue.js";
import type { Workload } from "../workload.js";

const CLIENTS = 8;
const SINGLES = 50;

/** Bulk enqueue by one producer, concurrent single calls, and single tasks with the caller's own transaction. */
export function enqueues(cast: Cast): Workload[] {
  return [
    workload(cast, "enqueue", "lists of tasks enqueued by one producer, one call in flight", {
      kind: "bulk",
      inFlight: 1,
    }),
    workload(cast, "enqueue-4", "lists of tasks enqueued by one producer, four calls in flight", {
      kind: "bulk",
      inFlight: 4,
    }),
    workload(cast, "enqueue-50", `single tasks enqueued by one producer, ${SINGLES} calls in flight`, {
      kind: "singles",
      inFlight: SINGLES,
    }),
    workload(cast, "enqueue-tx", `one task and one row of the caller in a transaction, from ${CLIENTS} clients`, {
      kind: "clients",
      clients: CLIENTS,
    }),
  ];
}

function workload(cast: Cast, name: string, about: string, how: Enqueuing): Workload {
  const which = name === "enqueue" ? "all" : "tuned";
  // Without notifications single enqueues need not commit one after the other.
  const further = how.kind !== "bulk" ? "polling" : undefined;
  const entrants = [cast.sluice("default"), ...cast.peers(which, further)];
  return {
    name,
    about,
    unit: "tasks/s",
    better: "more",
    sizing: { by: "seconds" },
    base: null,
    subjects: entrants.map((entrant) => enqueueSubject(entrant, how)),
  };
}
