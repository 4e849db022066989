import { checkOptions } from "../core/option.js";
import type { ConfigFile } from "./file.js";
import { checkValue, parseValue, type Setting } from "./kinds.js";
import { presetOf, type PresetName, type PresetNumbers } from "./presets.js";
import {
  namesOf,
  presetSetting,
  settingOf,
  snakeCase,
  type Name,
  type Section,
  type Some,
  type Values,
} from "./table.js";

/** The sources of settings besides code. connect reads them once. */
export interface Layers {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly file: ConfigFile | null;
}

/** Where a value came from. */
export type Source =
  | { readonly layer: "code" | "default" }
  | { readonly layer: "env"; readonly name: string }
  | { readonly layer: "file"; readonly path: string; readonly key: string }
  | { readonly layer: "preset"; readonly name: string };

/** The values of a section, and the source of each. */
interface Resolved<S extends Section> {
  readonly values: Values<S>;
  readonly sources: Readonly<Record<Name<S>, Source>>;
}

interface Found {
  readonly value: unknown;
  readonly source: Source;
}

/** Resolves every value of a section: code before environment before file before preset before default. */
export function resolveSection<S extends Section>(
  section: S,
  code: Some<S>,
  layers: Layers,
  preset: PresetName = "default",
): Resolved<S> {
  const values = {} as Record<Name<S>, unknown>;
  const sources = {} as Record<Name<S>, Source>;
  for (const name of namesOf(section)) {
    const label = section === "client" || section === "worker" ? name : `${section}.${name}`;
    const setting = settingOf(section, name);
    const key = `${section}.${snakeCase(name)}`;
    const found =
      fromCode(setting, code[name], label) ??
      fromEnv(setting, layers.env) ??
      fromFile(key, layers.file) ??
      (section === "worker" ? fromPreset(name, preset) : undefined);
    values[name] = found === undefined ? (setting.default ?? undefined) : found.value;
    sources[name] = found?.source ?? { layer: "default" };
  }
  return { values: values as Values<S>, sources };
}

/**
 * Like resolveSection, for a section that in code is an object of its own: `history: { failedMs: 0 }`. Settings that
 * only code can set are left out.
 */
export function resolveWithin<S extends Section>(
  section: S,
  code: Some<S> | undefined,
  layers: Layers,
  codeOnly: readonly string[] = [],
): Values<S> {
  if (code !== undefined) checkOptions(section, code, [...namesOf(section), ...codeOnly]);
  return resolveSection(section, code ?? ({} as Some<S>), layers).values;
}

/** The preset's name: code before environment before file before default. */
export function resolvePreset(
  code: unknown,
  { env, file }: Layers,
): { readonly value: PresetName; readonly source: Source } {
  const found = fromCode(presetSetting, code, "preset") ?? fromEnv(presetSetting, env) ?? fromFile("preset", file);
  return (found ?? { value: presetSetting.default, source: { layer: "default" } }) as {
    value: PresetName;
    source: Source;
  };
}

function fromCode(setting: Setting, value: unknown, label: string): Found | undefined {
  if (value === undefined) return undefined;
  const place = { label, details: { option: label }, inCode: true };
  return { value: checkValue(setting, value, place), source: { layer: "code" } };
}

/** Many shells and deploy files use an empty variable to mean "not set". */
function fromEnv(setting: Setting, env: Layers["env"]): Found | undefined {
  const { env: name } = setting;
  const text = env[name];
  if (text === undefined || text === "") return undefined;
  const place = { label: name, details: { option: name } };
  return { value: parseValue(setting, text, place), source: { layer: "env", name } };
}

/** File values were checked when the file was read. */
function fromFile(key: string, file: ConfigFile | null): Found | undefined {
  if (file?.values.has(key) !== true) return undefined;
  return { value: file.values.get(key), source: { layer: "file", path: file.path, key } };
}

function fromPreset(name: string, preset: PresetName): Found | undefined {
  const value = presetOf(preset)[name as keyof PresetNumbers];
  return value === undefined ? undefined : { value, source: { layer: "preset", name: preset } };
}
