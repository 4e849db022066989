import { connectionsOf, type ConnectionShares } from "../config/connections.js";
import { enoughFree } from "../core/claim-policy.js";
import type { PlanInput, Setting } from "./input.js";

/** What a workload asks for, whatever carries it. */
interface Demand {
  /** Handlers running at once, by Little's law. */
  readonly inFlight: number;
  /** JavaScript per task. */
  readonly scriptMs: number;
  /** Cores that do nothing else. */
  readonly cores: number;
}

/** Tasks per second, each so long. */
export function demandOf({ ratePerSecond, durations, ioShare, engineMs }: PlanInput): Demand {
  const scriptMs = durations.meanMs * (1 - ioShare) + engineMs;
  return {
    inFlight: (ratePerSecond * durations.meanMs) / 1000,
    scriptMs,
    cores: (ratePerSecond * scriptMs) / 1000,
  };
}

/**
 * How long JavaScript waits for its turn where one process serves one piece at a time: what is known of a
 * queue with one server and pieces of one length. Counted up to the utilisation that is wanted: where the
 * processor is the bottleneck, more permits would only move the queue into the process.
 */
export function loopWaitMs(input: PlanInput, processes: number): number {
  const { scriptMs, cores } = demandOf(input);
  const busy = Math.min(cores / processes, input.utilisation);
  return (scriptMs * busy) / (2 * (1 - busy));
}

/** How long a permit is held: from the claim that takes it to the answer that the outcome is recorded. */
export function permitHeldMs(input: PlanInput, waitMs: number): number {
  return input.durations.meanMs + input.engineMs + 2 * input.claimMs + waitMs;
}

/** What a setting can carry at the most, in tasks per second (infinite where it takes no time), and what holds it there. */
export interface Capacity {
  readonly byPermits: number;
  readonly byCpu: number;
  readonly byClaims: number;
  readonly perSecond: number;
  readonly bottleneck: "permits" | "cpu" | "claims";
}

/** Statements that a process with so many claim loops keeps under way. */
export function linesOf(claimLoops: number): number {
  return connectionsOf({ claimLoops, dbConnections: 0, apiConnections: 0 }).claims;
}

/** What the setting can carry if there is always something to do. */
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
  // A worker that is nearly full only replaces what ends: it stays anywhere between nine tenths and full.
  const used = permits - (enoughFree(permits) - 1) / 2;
  return perSecond(used * processes, input.durations.meanMs + input.engineMs + input.claimMs);
}

function perSecond(servers: number, eachMs: number): number {
  return (servers * 1000) / eachMs;
}

/** Who gets which of a process's connections. Where nobody said, handlers have what the others leave. */
export function sharesOf(input: PlanInput, { claimLoops, connections }: Setting): ConnectionShares {
  const { apiConnections } = input;
  const handlerConnections = input.handlerConnections ?? undefined;
  const numbers = { claimLoops, dbConnections: connections, apiConnections };
  return connectionsOf({ ...numbers, handlerConnections });
}

/** What can be done if every task holds a connection by `ctx.transaction` for its whole duration. */
export function transactionsPerSecond(input: PlanInput, setting: Setting): number {
  const { handlers } = sharesOf(input, setting);
  return (setting.processes * handlers * 1000) / input.durations.meanMs;
}
