import type { Clock, Findings } from "./findings.js";
import type { History } from "./history.js";
import type { Terms } from "./line.js";
import type { Trial } from "./trial.js";

/** What every question is asked of. */
export interface Case {
  readonly history: History;
  readonly trial: Trial;
  readonly terms: Terms;
  readonly findings: Findings;
  readonly clock: Clock;
}
