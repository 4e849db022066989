/** Reasons why a worker claims less than it could, or nothing. The worker's row and the metrics use the same words. */
export const pressureReasons = ["permits", "payload", "memory", "task_duration", "event_loop_delay"] as const;

/** A reason why a worker claims less than it could. */
export type PressureReason = (typeof pressureReasons)[number];

/**
 * The effect of pressure on claims: none, smaller claims, or no claims. A worker stopped for lack of permits still
 * replaces each task that ends with the next one; a worker stopped for lack of payload bytes does not.
 */
export const pressureWords = ["normal", "reduced", "stopped"] as const;

/** A worker's pressure state and its reasons. */
export interface PressureState {
  readonly state: (typeof pressureWords)[number];
  /** Empty if the state is `normal`. */
  readonly reasons: readonly PressureReason[];
}

/** Permits and payload stop claims, each in its own way; all other reasons make them smaller. */
export function pressureOf(reasons: readonly PressureReason[]): PressureState {
  const stopped = reasons.includes("permits") || reasons.includes("payload");
  return { state: stopped ? "stopped" : reasons.length > 0 ? "reduced" : "normal", reasons };
}
