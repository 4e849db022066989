import { presetNames, presetOf, presetPurposes, type PresetName } from "../config/presets.js";
import { table } from "../config/table.js";
import { arithmeticOf, type Sum } from "./arithmetic.js";
import { capacityOf, linesOf, type Capacity } from "./capacity.js";
import type { PlanInput, Setting } from "./input.js";
import { connectionsFor, recommend } from "./recommend.js";
import type { SimulationInput } from "./simulate/simulate.js";
import { warningsOf, type Warning } from "./warnings.js";

/** The recommendation for a workload and its reasons, and an assessment of the setting in question. */
export interface Plan {
  readonly recommendation: Setting;
  readonly arithmetic: readonly Sum[];
  readonly nearestPreset: Likeness;
  /** The given values, by number or by preset; the rest as recommended. */
  readonly setting: Setting;
  readonly capacity: Capacity;
  readonly warnings: readonly Warning[];
}

/** Plans for a workload, without simulating it. */
export function planFor(input: PlanInput): Plan {
  const recommendation = recommend(input);
  const setting = settingOf(input, recommendation);
  const capacity = capacityOf(input, setting);
  return {
    recommendation,
    arithmetic: arithmeticOf(input, recommendation),
    nearestPreset: nearestPreset(recommendation, input.cores),
    setting,
    capacity,
    warnings: warningsOf(input, setting, capacity),
  };
}

/** A given number takes precedence over the preset, and the preset over the recommendation. */
function settingOf(input: PlanInput, recommendation: Setting): Setting {
  const preset = input.preset === null ? {} : eachOf(input.preset, input.cores);
  const chosen = { ...recommendation, ...preset, ...input.given };
  const open = input.preset === null && input.given.connections === undefined;
  return open ? { ...chosen, connections: connectionsFor(input, chosen.claimLoops) } : chosen;
}

// After this many durations, a simulation shows more than how a worker fills.
const DURATIONS_SIMULATED = 20;
const SECONDS_MIN = 60;

/** The default time to simulate: long tasks need longer. */
export function secondsFor({ durations }: PlanInput): number {
  return Math.max(SECONDS_MIN, Math.ceil((DURATIONS_SIMULATED * durations.meanMs) / 1000));
}

/** The simulation input for a workload and a setting. */
export function simulationOf(
  input: PlanInput,
  { processes, permits, claimLoops }: Setting,
  { seconds, seed }: { readonly seconds: number; readonly seed: number },
): SimulationInput {
  const { durations, ratePerSecond, steady, ioShare, cores, batch, claimMs, engineMs } = input;
  const workload = { ratePerSecond, steady, ioShare, cores, batch, claimMs, engineMs };
  return {
    ...workload,
    processes,
    permits,
    lines: linesOf(claimLoops),
    meanMs: durations.meanMs,
    durationMs: durations.draw,
    seconds,
    seed,
  };
}

/** The values that a preset gives each process. */
type Each = Omit<Setting, "processes">;

/** A preset compared to a setting, with their differences. */
interface Likeness extends Each {
  readonly name: PresetName;
  /** The purpose of the preset, in words. */
  readonly purpose: string;
  readonly differences: readonly string[];
}

/** The numbers of a preset; values that it leaves open have their defaults. */
export function eachOf(name: PresetName, cores: number): Each {
  const numbers = presetOf(name, cores);
  const { maxConcurrentTasks, claimLoops, dbConnections } = table.worker;
  return {
    permits: numbers.maxConcurrentTasks ?? maxConcurrentTasks.default,
    claimLoops: numbers.claimLoops ?? claimLoops.default,
    connections: numbers.dbConnections ?? dbConnections.default,
  };
}

// Permits weigh more, because they decide the throughput of a setting.
const PERMITS_WEIGHT = 3;

/** The nearest preset, by the factors between the numbers. */
export function nearestPreset(setting: Setting, cores: number): Likeness {
  const all = presetNames.map((name) => likenessOf(name, setting, cores));
  return all.reduce((best, one) => (far(one, setting) < far(best, setting) ? one : best));
}

function far(preset: Each, setting: Setting): number {
  const [permits, claimLoops, connections] = fieldsOf(preset, setting).map(([, is, wanted]) =>
    Math.abs(Math.log(is / wanted)),
  );
  return PERMITS_WEIGHT * permits! + claimLoops! + connections!;
}

/** How a preset differs from a setting. */
function likenessOf(name: PresetName, setting: Setting, cores: number): Likeness {
  const each = eachOf(name, cores);
  const differences = fieldsOf(each, setting)
    .filter(([, is, wanted]) => is !== wanted)
    .map(([what, is, wanted]) => `${what} ${is} instead of ${wanted}`);
  return { name, purpose: presetPurposes[name], ...each, differences };
}

function fieldsOf(preset: Each, setting: Setting): [string, number, number][] {
  return [
    ["permits", preset.permits, setting.permits],
    ["claim loops", preset.claimLoops, setting.claimLoops],
    ["connections", preset.connections, setting.connections],
  ];
}
