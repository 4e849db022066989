import { Command } from "commander";
import { apiShare, connectionsOf, sumOf } from "../config/connections.js";
import { readConfigFile } from "../config/file.js";
import { presetNames, type PresetName } from "../config/presets.js";
import { resolvePreset, resolveSection, type Layers, type Source } from "../config/resolve.js";
import { namesOf, sections, settingOf, snakeCase, type Section } from "../config/table.js";
import { SluiceError } from "../core/error.js";
import { checkMetrics } from "../metrics/options.js";
import { bold, dim } from "./colors.js";
import { printResult } from "./print.js";

interface ConfigFlags {
  readonly preset?: string;
  readonly config?: string;
  readonly json?: boolean;
}

/** One setting, as printed. */
interface Line {
  readonly section: Section;
  /** The key in sluice.toml. */
  readonly key: string;
  readonly env: string;
  readonly value: string | number | boolean | null;
  readonly source: string;
  readonly help: string;
}

/** `sluice config`: every setting, its effective value, and the source of that value. */
export function configCommand(): Command {
  return new Command("config")
    .summary("print every setting and where it came from")
    .description(
      "Prints the value that every setting has for a process started here, and where the value came from.\n" +
        "Code overrides the environment, which overrides sluice.toml, which overrides the preset, which overrides\n" +
        "the default. This command cannot see the options in your code. Passwords are hidden.",
    )
    .option("--config <file>", "the config file; default: SLUICE_CONFIG, else ./sluice.toml")
    .option("--preset <name>", `show the settings of this preset: ${presetNames.join(", ")}`)
    .option("--json", "print one line of JSON")
    .addHelpText(
      "after",
      `
Examples:
  $ sluice config
  $ sluice config --preset io
  $ MAX_CONCURRENT_TASKS=200 sluice config --config deploy/sluice.toml --json

The JSON: {"file":null,"preset":{"value":"io","source":"--preset"},"settings":[{"section":"worker",
"key":"lease_ms","env":"LEASE_MS","value":15000,"source":"default","help":"..."},...],"connections":{...}}
Fails with invalid_option if a value is invalid, if the connections do not add up, or if
metrics would be served beyond loopback without a token.`,
    )
    .action(runConfig);
}

async function runConfig({ preset: wanted, config, json = false }: ConfigFlags): Promise<void> {
  const layers: Layers = { env: process.env, file: await readConfigFile(config, process.env) };
  const preset = resolvePreset(wanted, layers);
  const settings = sections.flatMap((section) => linesOf(section, layers, preset.value));
  const { values } = resolveSection("worker", {}, layers, preset.value);
  const apiConnections = apiShare(resolveSection("client", {}, layers).values);
  const connections = connectionsOf({ ...values, apiConnections });
  const shown = { value: preset.value, source: sourceText(preset.source) };
  const file = layers.file?.path ?? null;
  printResult(
    { file, preset: shown, settings, connections },
    [
      `config file: ${file ?? "none"}`,
      `preset: ${shown.value} (${shown.source})`,
      ...sections.flatMap((section) => group(section, settings)),
      "",
      `connections: ${connections.total} for ${sumOf(connections)}`,
    ],
    json,
  );
  if (connections.problem !== null)
    throw new SluiceError("invalid_option", connections.problem, { details: { ...connections } });
  // The same check that a new worker makes.
  checkMetrics({}, layers);
}

function linesOf(section: Section, layers: Layers, preset: PresetName): Line[] {
  const { values, sources } = resolveSection<Section>(section, {}, layers, preset);
  return namesOf<Section>(section).map((name) => {
    const setting = settingOf<Section>(section, name);
    const value = (values[name] ?? null) as Line["value"];
    const mask = setting.kind === "text" ? setting.mask : undefined;
    return {
      section,
      key: snakeCase(name),
      env: setting.env,
      value: typeof value === "string" && mask !== undefined ? mask(value) : value,
      source: sourceText(sources[name]),
      help: setting.help,
    };
  });
}

/** In words: "default", "env LEASE_MS", "preset io", "file /srv/sluice.toml: worker.lease_ms". */
function sourceText(source: Source): string {
  switch (source.layer) {
    case "env":
      return `env ${source.name}`;
    case "file":
      return `file ${source.path}: ${source.key}`;
    case "preset":
      return `preset ${source.name}`;
    case "code":
      // The only setting that the command itself passes as code.
      return "--preset";
    default:
      return source.layer;
  }
}

function group(section: Section, all: readonly Line[]): string[] {
  const lines = all.filter((line) => line.section === section);
  const width = (of: (line: Line) => string): number => Math.max(...lines.map((line) => of(line).length));
  const [keys, values, sources] = [
    width(({ key }) => key),
    width(({ value }) => valueText(value)),
    width(({ source }) => source),
  ];
  const rows = lines.map(({ key, value, source, env }) => {
    const from = source.padEnd(sources);
    const shown = valueText(value).padStart(values);
    return `  ${key.padEnd(keys)}  ${shown}  ${source === "default" ? dim(from) : from}  ${dim(env)}`;
  });
  return ["", bold(`[${section}]`), ...rows];
}

function valueText(value: Line["value"]): string {
  return value === null ? "not set" : String(value);
}
