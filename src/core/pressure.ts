/** Why a worker claims less than it could, or nothing: the same words in the worker's row and in metrics. */
export const pressureReasons = ["permits", "payload", "memory", "task_duration", "event_loop_delay"] as const;

/** One of the reasons. */
export type PressureReason = (typeof pressureReasons)[number];

/**
 * What pressure does to claims: nothing; smaller ones; or none. Stopped for want of permits, a worker still
 * replaces each task that ends by the next; for want of bytes not even that.
 */
export const pressureWords = ["normal", "reduced", "stopped"] as const;

/** How a worker stands, and why. */
export interface PressureState {
  readonly state: (typeof pressureWords)[number];
  /** Empty if it is normal. */
  readonly reasons: readonly PressureReason[];
}

/** Permits and payload stop claims, each in its way; everything else makes them smaller. */
export function pressureOf(reasons: readonly PressureReason[]): PressureState {
  const stopped = reasons.includes("permits") || reasons.includes("payload");
  return { state: stopped ? "stopped" : reasons.length > 0 ? "reduced" : "normal", reasons };
}
