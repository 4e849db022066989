import { connectionsOf } from "../config/connections.js";
import type { PresetName } from "../config/presets.js";
import { table } from "../config/table.js";
import type { Range } from "../core/number.js";
import type { Durations } from "./durations.js";

/** The resources that run a workload: a number of processes, and the resources of each. */
export interface Setting {
  readonly processes: number;
  readonly permits: number;
  readonly claimLoops: number;
  readonly connections: number;
}

/** A workload, its environment, and the settings that are already fixed. */
export interface PlanInput {
  readonly ratePerSecond: number;
  readonly steady: boolean;
  readonly durations: Durations;
  /** The share of a task's duration in which it waits for something other than the processor. */
  readonly ioShare: number;
  readonly cores: number;
  /** Tasks per claim. */
  readonly batch: number;
  /** Whether an option or the preset sets the batch. Otherwise the worker adapts it to its load. */
  readonly batchSet: boolean;
  /** The duration of a step, which settles and claims. */
  readonly claimMs: number;
  /** JavaScript time per task besides its handler. */
  readonly engineMs: number;
  /** The target utilisation of permits and processors, as a share. */
  readonly utilisation: number;
  readonly apiConnections: number;
  /** Null if not given. */
  readonly handlerConnections: number | null;
  readonly maxConnections: number;
  /** Values to check instead of the recommended ones. */
  readonly given: Partial<Setting>;
  readonly preset: PresetName | null;
}

/** The connections for handler transactions in a worker with default settings. */
const HANDLER_CONNECTIONS = connectionsOf({
  claimLoops: table.worker.claimLoops.default,
  dbConnections: table.worker.dbConnections.default,
  apiConnections: table.client.apiConnections.default,
}).handlers;

/** Defaults for values that are not given. */
export const planDefaults = {
  claimMs: 3,
  engineMs: 0.1,
  utilisation: 0.7,
  handlerConnections: HANDLER_CONNECTIONS,
  maxConnections: 100,
  seed: 1,
} as const;

/** Accepted ranges. */
export const planRanges = {
  ioShare: { min: 0, max: 1 },
  cores: { min: 1, max: 1024 },
  processes: { min: 1, max: 1000 },
  claimMs: { min: 0, max: 10_000 },
  engineMs: { min: 0, max: 1000 },
  // With nine tenths of its permits in use, a worker only replaces tasks that end.
  utilisation: { min: 0.1, max: 0.9 },
  handlerConnections: { min: 1, max: 10_000 },
  maxConnections: { min: 1, max: 100_000 },
  seconds: { min: 1, max: 86_400 },
  seed: { min: 0, max: 2 ** 48 },
} as const satisfies Record<string, Range>;
