import { connectionsOf } from "../config/connections.js";
import type { PresetName } from "../config/presets.js";
import { table } from "../config/table.js";
import type { Range } from "../core/number.js";
import type { Durations } from "./durations.js";

/** What carries a workload: so many processes, each with so much of the rest. */
export interface Setting {
  readonly processes: number;
  readonly permits: number;
  readonly claimLoops: number;
  readonly connections: number;
}

/** A workload, what is known about its surroundings, and what is decided already. */
export interface PlanInput {
  readonly ratePerSecond: number;
  readonly steady: boolean;
  readonly durations: Durations;
  /** The share of a task's duration in which it waits for something else than the processor. */
  readonly ioShare: number;
  readonly cores: number;
  /** Tasks per claim. */
  readonly batch: number;
  /** Whether somebody set it, the preset perhaps: else the worker adapts it to its load. */
  readonly batchSet: boolean;
  /** How long a step, which settles and claims, is under way. */
  readonly claimMs: number;
  /** What a task costs in JavaScript besides its handler. */
  readonly engineMs: number;
  /** How busy permits and processors are meant to be, as a share. */
  readonly utilisation: number;
  readonly apiConnections: number;
  /** null: nobody said. */
  readonly handlerConnections: number | null;
  readonly maxConnections: number;
  /** To be checked instead of what is recommended. */
  readonly given: Partial<Setting>;
  readonly preset: PresetName | null;
}

/** What a worker at its defaults has for transactions of handlers. */
const HANDLER_CONNECTIONS = connectionsOf({
  claimLoops: table.worker.claimLoops.default,
  dbConnections: table.worker.dbConnections.default,
  apiConnections: table.client.apiConnections.default,
}).handlers;

/** What is assumed where nothing is said. */
export const planDefaults = {
  claimMs: 3,
  engineMs: 0.1,
  utilisation: 0.7,
  handlerConnections: HANDLER_CONNECTIONS,
  maxConnections: 100,
  seed: 1,
} as const;

/** What is taken for sensible. */
export const planRanges = {
  ioShare: { min: 0, max: 1 },
  cores: { min: 1, max: 1024 },
  processes: { min: 1, max: 1000 },
  claimMs: { min: 0, max: 10_000 },
  engineMs: { min: 0, max: 1000 },
  // With nine tenths of its permits in hand a worker does no more than replace what ends.
  utilisation: { min: 0.1, max: 0.9 },
  handlerConnections: { min: 1, max: 10_000 },
  maxConnections: { min: 1, max: 100_000 },
  seconds: { min: 1, max: 86_400 },
  seed: { min: 0, max: 2 ** 48 },
} as const satisfies Record<string, Range>;
