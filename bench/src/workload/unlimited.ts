import type { Cast } from "../cast.js";
import { drainSubject, type Drain } from "../measure/drain.js";
import type { Subject } from "../workload.js";

export const UNLIMITED = "unlimited";

/** The plain drain that others of ours are compared to, measured beside each of them. */
export function unlimited(cast: Cast, more: Partial<Drain> = {}): Subject {
  return drainSubject(cast.sluice("history on"), { shape: {}, ...more }, UNLIMITED);
}

/** A drain of ours that is compared to it. */
export function compared(cast: Cast, name: string, drain: Drain): Subject {
  return drainSubject(cast.sluice("history on"), drain, name);
}
