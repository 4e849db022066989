import { connectionsOf } from "../config/connections.js";
import { table } from "../config/table.js";
import { demandOf, loopWaitMs, permitHeldMs } from "./demand.js";
import type { PlanInput, Setting } from "./input.js";

// One runs while the next is claimed.
const PERMITS_MIN = 2;
// Where each claim takes one task, a loop for every second or third permit: the third, unless it is not enough.
const PERMITS_PER_LOOP = 3;

/** What would carry the workload at the utilisation that is wanted. Processes are taken as given, if they are. */
export function recommend(input: PlanInput): Setting {
  const processes = input.given.processes ?? processesFor(input);
  const permits = Math.ceil(round(permitsInAll(input, processes) / processes));
  const bounded = Math.min(Math.max(PERMITS_MIN, permits), table.worker.maxConcurrentTasks.max);
  const claimLoops = loopsFor(input, processes, bounded);
  return {
    processes,
    permits: bounded,
    claimLoops,
    connections: connectionsFor(input, claimLoops),
  };
}

/** One Node process uses one core for JavaScript, so more of them than cores gain nothing. */
function processesFor(input: PlanInput): number {
  const wanted = Math.ceil(round(demandOf(input).cores / input.utilisation));
  return Math.min(Math.max(1, wanted), input.cores);
}

/** Permits of all processes together. */
export function permitsInAll(input: PlanInput, processes: number): number {
  const heldMs = permitHeldMs(input, loopWaitMs(input, processes));
  return (input.ratePerSecond * heldMs) / 1000 / input.utilisation;
}

function loopsFor(input: PlanInput, processes: number, permits: number): number {
  if (input.batch > 1) return 1;
  const ruled = Math.ceil(permits / PERMITS_PER_LOOP);
  const busy = (input.ratePerSecond * input.claimMs) / 1000 / processes;
  const needed = Math.ceil(round(busy / input.utilisation));
  return Math.min(Math.max(1, ruled, needed), table.worker.claimLoops.max);
}

/** What a process with so many claim loops opens. */
export function connectionsFor(input: PlanInput, claimLoops: number): number {
  const { apiConnections, handlerConnections } = input;
  return connectionsOf({ claimLoops, dbConnections: 0, apiConnections, handlerConnections }).needed;
}

/** 14.000000000000002 is 14, of which the ceiling is not 15. */
function round(n: number): number {
  return Number(n.toPrecision(12));
}
