import { presetNames, presetOf, presetPurposes, type PresetName } from "../config/presets.js";
import { table } from "../config/table.js";
import type { Setting } from "./input.js";

/** What a preset gives each process. */
type Each = Omit<Setting, "processes">;

/** A preset beside a setting: where they differ. */
export interface Likeness extends Each {
  readonly name: PresetName;
  /** What it is for, in words. */
  readonly purpose: string;
  readonly differences: readonly string[];
}

/** The numbers of a preset; what it leaves open is at its default. */
export function eachOf(name: PresetName, cores: number): Each {
  const numbers = presetOf(name, cores);
  const { maxConcurrentTasks, claimLoops, dbConnections } = table.worker;
  return {
    permits: numbers.maxConcurrentTasks ?? maxConcurrentTasks.default,
    claimLoops: numbers.claimLoops ?? claimLoops.default,
    connections: numbers.dbConnections ?? dbConnections.default,
  };
}

// Permits decide what a setting carries.
const PERMITS_WEIGHT = 3;

/** The preset that is least far away, by the factors between the numbers. */
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
