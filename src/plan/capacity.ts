import { connectionsOf, type ConnectionShares } from "../config/connections.js";
import { enoughFree } from "../core/claim-policy.js";
import type { PlanInput, Setting } from "./input.js";

/** The demand of a workload, independent of the setting that runs it. */
interface Demand {
  /** Handlers running concurrently, by Little's law. */
  readonly inFlight: number;
  /** JavaScript per task. */
  readonly scriptMs: number;
  /** Cores fully occupied. */
  readonly cores: number;
}

/** The demand of a workload, from its task rate and durations. */
export function demandOf({ ratePerSecond, durations, ioShare, engineMs }: PlanInput): Demand {
  const scriptMs = durations.meanMs * (1 - ioShare) + engineMs;
  return {
    inFlight: (ratePerSecond * durations.meanMs) / 1000,
    scriptMs,
    cores: (ratePerSecond * scriptMs) / 1000,
  };
}

/**
 * How long JavaScript waits for its turn if one process runs one piece at a time, by the formula for a queue with one
 * server and pieces of constant length. Utilisation is capped at the target: where the processor is the bottleneck,
 * more permits would only move the queue into the process.
 */
export function loopWaitMs(input: PlanInput, processes: number): number {
  const { scriptMs, cores } = demandOf(input);
  const busy = Math.min(cores / processes, input.utilisation);
  return (scriptMs * busy) / (2 * (1 - busy));
}

/** How long a permit is held: from the claim that takes it to the reply that the outcome is recorded. */
export function permitHeldMs(input: PlanInput, waitMs: number): number {
  return input.durations.meanMs + input.engineMs + 2 * input.claimMs + waitMs;
}

/** The maximum throughput of a setting in tasks per second (infinite where it takes no time), and its bottleneck. */
export interface Capacity {
  readonly byPermits: number;
  readonly byCpu: number;
  readonly byClaims: number;
  readonly perSecond: number;
  readonly bottleneck: "permits" | "cpu" | "claims";
}

/** Statements that a process with this many claim loops keeps in flight. */
export function linesOf(claimLoops: number): number {
  return connectionsOf({ claimLoops, dbConnections: 0, apiConnections: 0 }).claims;
}

/** The throughput of the setting if there is always a backlog. */
export function capacityOf(input: PlanInput, setting: Setting): Capacity {
  const by = {
    permits: permitsCarry(input, setting),
    cpu: perSecond(Math.min(setting.processes, input.cores), demandOf(input).scriptMs),
    claims: perSecond(setting.processes * linesOf(setting.claimLoops) * input.batch, input.claimMs),
  };
  const [bottleneck, least] = (Object.entries(by) as [keyof typeof by, number][]).reduce((least, one) =>
    one[1] < least[1] ? one : least,
  );
  return {
    byPermits: by.permits,
    byCpu: by.cpu,
    byClaims: by.claims,
    perSecond: least,
    bottleneck,
  };
}

/** The step that records a task claims the next on its permit: one round trip between two tasks. */
function permitsCarry(input: PlanInput, { permits, processes }: Setting): number {
  // A nearly full worker only replaces tasks that end: it stays anywhere between nine tenths and full.
  const used = permits - (enoughFree(permits) - 1) / 2;
  return perSecond(used * processes, input.durations.meanMs + input.engineMs + input.claimMs);
}

function perSecond(servers: number, eachMs: number): number {
  return (servers * 1000) / eachMs;
}

/** How a process's connections are divided. If no number is given, handlers get the rest. */
export function sharesOf(input: PlanInput, { claimLoops, connections }: Setting): ConnectionShares {
  const { apiConnections } = input;
  const handlerConnections = input.handlerConnections ?? undefined;
  const numbers = { claimLoops, dbConnections: connections, apiConnections };
  return connectionsOf({ ...numbers, handlerConnections });
}

/** Tasks per second if every task holds a connection by `ctx.transaction` for its whole duration. */
export function transactionsPerSecond(input: PlanInput, setting: Setting): number {
  const { handlers } = sharesOf(input, setting);
  return (setting.processes * handlers * 1000) / input.durations.meanMs;
}
