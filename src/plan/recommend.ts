import { connectionsOf } from "../config/connections.js";
import { table } from "../config/table.js";
import { demandOf, loopWaitMs, permitHeldMs } from "./capacity.js";
import { planDefaults, planRanges, type PlanInput, type Setting } from "./input.js";

// One task runs while the next is claimed.
const PERMITS_MIN = 2;
// If each claim takes one task, use one loop for every second or third permit: every third, unless that is not enough.
const PERMITS_PER_LOOP = 3;
/** The maximum for one process. */
export const PERMITS_MAX = table.worker.maxConcurrentTasks.max;

/** A setting that handles the workload at the target utilisation. Uses the given number of processes, if any. */
export function recommend(input: PlanInput): Setting {
  const processes = input.given.processes ?? processesFor(input);
  const permits = Math.ceil(round(permitsInAll(input, processes) / processes));
  const bounded = Math.min(Math.max(PERMITS_MIN, permits), PERMITS_MAX);
  const claimLoops = loopsFor(input, processes, bounded);
  return {
    processes,
    permits: bounded,
    claimLoops,
    connections: connectionsFor(input, claimLoops),
  };
}

/** As many processes as the processor or the permits require, whichever is more. */
function processesFor(input: PlanInput): number {
  const byCpu = processesByCpu(input);
  const byPermits = processesByPermits(input, byCpu);
  return Math.min(Math.max(byCpu, byPermits), planRanges.processes.max);
}

/** One Node process uses one core for JavaScript, so more processes than cores gain nothing. */
export function processesByCpu(input: PlanInput): number {
  const wanted = Math.ceil(round(demandOf(input).cores / input.utilisation));
  return Math.min(Math.max(1, wanted), input.cores);
}

/**
 * The number of processes at which none needs more permits than the maximum. With more processes, tasks wait less and
 * need no more permits.
 */
export function processesByPermits(input: PlanInput, processes: number): number {
  return Math.ceil(round(permitsInAll(input, processes) / PERMITS_MAX));
}

/** The permits of all processes together. */
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

/** The connections that a process with this many claim loops opens. */
export function connectionsFor(input: PlanInput, claimLoops: number): number {
  const { apiConnections } = input;
  const handlerConnections = input.handlerConnections ?? planDefaults.handlerConnections;
  return connectionsOf({ claimLoops, dbConnections: 0, apiConnections, handlerConnections }).needed;
}

/** Removes rounding errors: 14.000000000000002 is 14, and its ceiling is not 15. */
function round(n: number): number {
  return Number(n.toPrecision(12));
}
