import { exponential, type Random } from "./simulate/random.js";

/** The distribution of task durations. */
export interface Durations {
  readonly kind: "constant" | "exponential" | "samples";
  readonly meanMs: number;
  readonly p99Ms: number;
  /** The number of measured durations; 0 if the duration was only stated. */
  readonly samples: number;
  /** Draws a random duration. */
  readonly draw: (random: Random) => number;
}

/** All tasks take the same time. */
export function constantDurations(ms: number): Durations {
  return { kind: "constant", meanMs: ms, p99Ms: ms, samples: 0, draw: () => ms };
}

/**
 * Many short durations and a few long ones. The distribution is memoryless: time already spent does not bring the end
 * nearer.
 */
export function exponentialDurations(meanMs: number): Durations {
  const p99Ms = -meanMs * Math.log(0.01);
  const draw = (random: Random): number => exponential(random, meanMs);
  return { kind: "exponential", meanMs, p99Ms, samples: 0, draw };
}

/** Measured durations, all equally likely. There must be at least one. */
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
