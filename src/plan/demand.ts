import type { PlanInput } from "./input.js";

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
