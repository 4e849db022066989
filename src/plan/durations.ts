import { exponential, type Random } from "./simulate/random.js";

/** How long tasks take. */
export interface Durations {
  readonly kind: "constant" | "exponential" | "samples";
  readonly meanMs: number;
  readonly p99Ms: number;
  /** How many were measured; 0 if the number was only stated. */
  readonly samples: number;
  /** One of them, as chance has it. */
  readonly draw: (random: Random) => number;
}

/** All of one length. */
export function constantDurations(ms: number): Durations {
  return { kind: "constant", meanMs: ms, p99Ms: ms, samples: 0, draw: () => ms };
}

/** Many short ones and a few long ones: the next end is never nearer for having waited. */
export function exponentialDurations(meanMs: number): Durations {
  const p99Ms = -meanMs * Math.log(0.01);
  const draw = (random: Random): number => exponential(random, meanMs);
  return { kind: "exponential", meanMs, p99Ms, samples: 0, draw };
}

/** As they were measured, each as likely as the other. There must be at least one. */
export function sampledDurations(samples: readonly number[]): Durations {
  const sorted = Float64Array.from(samples).toSorted();
  return {
    kind: "samples",
    meanMs: sorted.reduce((sum, ms) => sum + ms, 0) / sorted.length,
    p99Ms: sorted[Math.ceil(0.99 * sorted.length) - 1]!,
    samples: sorted.length,
    draw: (random) => sorted[Math.floor(random() * sorted.length)]!,
  };
}
