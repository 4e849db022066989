import { connectionsOf } from "../config/connections.js";
import { enoughFree } from "../core/claim-policy.js";
import { demandOf } from "./demand.js";
import type { PlanInput, Setting } from "./input.js";

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
