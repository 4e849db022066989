import type { Look } from "./look.js";
import type { Scenario } from "./scenario.js";
import type { SlotTimes, Times } from "./times.js";

/** What came out for a call. look is null where there is no auto_explain. */
export interface Seen {
  readonly call: string;
  readonly times: Times;
  readonly look: Look | null;
}

/** What came out for a scenario. */
export interface ScenarioSeen {
  readonly scenario: Scenario;
  readonly calls: readonly Seen[];
  /** Where some types are limited and others are not. */
  readonly slots: SlotTimes | null;
  /** Why there are no plans. */
  readonly noPlans: string | null;
}
