import { readFile } from "node:fs/promises";
import { resolve } from "node:path";
import { SluiceError } from "../core/error.js";
import { didYouMean } from "../core/near.js";
import { quote } from "../core/quote.js";
import { checkValue, type Place, type Setting } from "./kinds.js";
import { namesOf, presetSetting, sections, settingOf, snakeCase, type Section } from "./table.js";

/** A sluice.toml that was read and checked. */
export interface ConfigFile {
  readonly path: string;
  /** By key, such as "worker.lease_ms". */
  readonly values: ReadonlyMap<string, unknown>;
}

type Environment = Readonly<Record<string, string | undefined>>;

const DEFAULT_FILE = "sluice.toml";
const FILE_CHARS_MAX = 1_000_000;

/**
 * Reads the config file: the one named in code or by SLUICE_CONFIG, else sluice.toml in the working directory if it
 * exists. `false` reads none.
 */
export async function readConfigFile(named: string | false | undefined, env: Environment): Promise<ConfigFile | null> {
  if (named === false) return null;
  if (named !== undefined && (typeof named !== "string" || named === ""))
    throw new SluiceError("invalid_option", `config must be the path of a file, or false, not ${quote(named)}`, {
      details: { option: "config" },
    });
  // Many shells use an empty variable to mean "not set".
  const wanted = named ?? (env["SLUICE_CONFIG"] || undefined);
  const path = resolve(wanted ?? DEFAULT_FILE);
  const text = await textOf(path, wanted !== undefined);
  return text === null ? null : { path, values: valuesOf(path, await parse(path, text)) };
}

async function textOf(path: string, mustExist: boolean): Promise<string | null> {
  try {
    const text = await readFile(path, "utf8");
    if (text.length <= FILE_CHARS_MAX) return text;
  } catch (e) {
    const { code, message } = e as NodeJS.ErrnoException;
    if (code === "ENOENT" && !mustExist) return null;
    const why = code === "ENOENT" ? "it does not exist" : message;
    throw refusal(path, undefined, `the config file ${path} cannot be read: ${why}`, e);
  }
  throw refusal(path, undefined, `the config file ${path} has more than ${FILE_CHARS_MAX} characters`);
}

/** Imports the TOML parser on demand: a process without a config file does not load it. */
async function parse(path: string, text: string): Promise<Readonly<Record<string, unknown>>> {
  const toml = await import("smol-toml");
  try {
    return toml.parse(text);
  } catch (e) {
    if (!(e instanceof toml.TomlError)) throw e;
    // Only the first line: the others quote the text, which may contain a password.
    const why = e.message.split("\n")[0]!.replace("Invalid TOML document: ", "");
    const message = `${path}, line ${e.line}, column ${e.column}: ${why}`;
    throw new SluiceError("invalid_option", message, {
      details: { file: path, line: e.line, column: e.column },
    });
  }
}

function valuesOf(path: string, top: Readonly<Record<string, unknown>>): Map<string, unknown> {
  const values = new Map<string, unknown>();
  for (const [key, value] of Object.entries(top)) {
    if (key === "preset") put(values, path, "preset", presetSetting, value);
    else putSection(values, path, knownSection(path, key), value);
  }
  return values;
}

function knownSection(path: string, key: string): Section {
  const found = sections.find((section) => section === key);
  if (found !== undefined) return found;
  const known = [...sections.map((section) => `[${section}]`), "preset"].join(", ");
  const near = didYouMean(key, [...sections, "preset"]);
  throw refusal(path, key, `${path} has an unknown top-level key ${quote(key)}; the known ones are ${known}${near}`);
}

function putSection(values: Map<string, unknown>, path: string, section: Section, content: unknown): void {
  if (typeof content !== "object" || content === null || Array.isArray(content))
    throw refusal(path, section, `${section} in ${path} must be a section: write [${section}]`);
  const names = namesOf(section);
  for (const [key, value] of Object.entries(content)) {
    const name = names.find((known) => snakeCase(known) === key);
    if (name === undefined) throw unknownKey(path, section, key, names.map(snakeCase));
    put(values, path, `${section}.${key}`, settingOf(section, name), value);
  }
}

function unknownKey(path: string, section: string, key: string, known: string[]): SluiceError {
  // maxConcurrentTasks probably means max_concurrent_tasks.
  const near = didYouMean(snakeCase(key), known);
  return refusal(
    path,
    `${section}.${key}`,
    `[${section}] in ${path} has no key ${quote(key)}${near || `; the known keys are ${known.join(", ")}`}`,
  );
}

function put(values: Map<string, unknown>, path: string, key: string, setting: Setting, value: unknown): void {
  // In the environment, many shells use an empty value to mean "not set"; in a file it is a mistake.
  if (setting.kind === "text" && value === "")
    throw refusal(path, key, `${key} in ${path} is empty: set a value, or remove the key`);
  const place: Place = { label: `${key} in ${path}`, details: { option: key, file: path } };
  values.set(key, checkValue(setting, value, place));
}

function refusal(file: string, option: string | undefined, message: string, cause?: unknown): SluiceError {
  const details = option === undefined ? { file } : { option, file };
  return new SluiceError("invalid_option", message, { details, ...(cause ? { cause } : {}) });
}
