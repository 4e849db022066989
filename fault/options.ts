import { Command, InvalidArgumentError } from "commander";
import { faults } from "./faults/index.js";
import { flowNames, type FlowName } from "./load/flows.js";
import { typeNames, type TypeName } from "./load/terms.js";
import { sabotages } from "./sabotage.js";
import type { Fault } from "./stage.js";

// A recovery takes up to a lease and 2 s, and a task starves after 3 s: so there is as long again to see one.
const CALM_SECONDS = 12;

export interface Options {
  readonly seed: number;
  readonly seconds: number;
  /** Undisturbed seconds at the end, in which no task may starve. */
  readonly calmSeconds: number;
  readonly faults: readonly Fault[];
  readonly tasks: number | null;
  readonly workers: number;
  readonly types: readonly TypeName[];
  readonly flows: readonly FlowName[];
  readonly json: boolean;
  readonly report: string | null;
  readonly log: string | null;
  readonly svg: string | null;
  readonly sabotage: string | null;
  readonly keep: boolean;
}

interface Given {
  readonly seed?: number;
  readonly seconds: number;
  readonly calm: number;
  readonly only?: readonly Fault[];
  readonly tasks?: number;
  readonly workers: number;
  readonly types?: readonly string[];
  readonly json?: boolean;
  readonly report?: string;
  readonly log?: string;
  readonly svg?: string;
  readonly sabotage?: string;
  readonly keep?: boolean;
}

/** Reads the command line. Ends the process with 2 if it makes no sense, and with 0 after --help. */
export function readOptions(args: readonly string[]): Options {
  const command = new Command("npm run fault --")
    .description(
      "Runs real workers and producers on its own PostgreSQL under faults, then audits the log of handlers and " +
        "producers. DATABASE_URL is ignored: faults need a server of their own. Exits with 0 if the run passed, 1 on " +
        "a violation, if a listed fault never took effect or if a limit was never full, and 2 on wrong usage.",
    )
    .option("--seed <n>", "seed of all random choices; default: from the clock", integer(0))
    .option("--seconds <n>", "duration in seconds", integer(1, 86_400), 60)
    .option(
      "--calm <n>",
      "undisturbed seconds at the end, in which no task may starve; 0 with --tasks",
      integer(0, 3_600),
      CALM_SECONDS,
    )
    .option("--only <names>", "only these faults, separated by commas", named)
    .option("--tasks <n>", "number of tasks, at an even rate; default: about 300 a second", integer(1))
    .option("--workers <n>", "worker processes", integer(1, 16), 4)
    .option("--types <names>", `only these task types and workflows: ${[...typeNames, ...flowNames].join(", ")}`, typed)
    .option("--json", "print progress to standard error and one JSON object as the last line of output")
    .option("--report <file>", "also write that object to a file")
    .option("--log <file>", "write every line of the audit log as JSON")
    .option("--svg <file>", "plot memory, dead tuples, latency and throughput")
    .option("--sabotage <name>", `for tests only: break the engine first (${names(sabotages)})`)
    .option("--keep", "keep the data of both servers for inspection")
    .addHelpText("after", `\nFaults:\n${catalogue()}\n`)
    .exitOverride((e) => process.exit(e.exitCode === 0 ? 0 : 2))
    .parse(args, { from: "user" });
  return complete(command, command.opts<Given>());
}

function complete(command: Command, given: Given): Options {
  const { sabotage } = given;
  if (sabotage !== undefined && !(sabotage in sabotages)) {
    command.error(`there is no sabotage ${sabotage}: ${names(sabotages)}`);
  }
  const missing = lacking(given.only ?? faults);
  if (missing !== null) command.error(missing);
  return {
    seed: given.seed ?? Date.now() % 1_000_000_000,
    seconds: given.seconds,
    calmSeconds: given.tasks === undefined ? given.calm : 0,
    faults: given.only ?? faults,
    tasks: given.tasks ?? null,
    workers: given.workers,
    types: typeNames.filter((name) => given.types?.includes(name) ?? true),
    flows: flowNames.filter((name) => given.types?.includes(name) ?? true),
    json: given.json ?? false,
    report: given.report ?? null,
    log: given.log ?? null,
    svg: given.svg ?? null,
    sabotage: sabotage ?? null,
    keep: given.keep ?? false,
  };
}

/** What the machine lacks for these faults, in words; null if nothing. Else a fault would fail at each of its turns. */
export function lacking(chosen: readonly Fault[]): string | null {
  const lines = chosen.flatMap(({ name, lacks }) => {
    const what = lacks?.() ?? null;
    return what === null ? [] : [`${name}: ${what}`];
  });
  return lines.length === 0 ? null : `${lines.join("\n")}\nor leave it out with --only`;
}

function integer(min: number, max = 2_000_000_000): (text: string) => number {
  return (text) => {
    const n = /^\d{1,10}$/.test(text) ? Number(text) : Number.NaN;
    if (n >= min && n <= max) return n;
    throw new InvalidArgumentError(`It must be an integer from ${min} to ${max}.`);
  };
}

function named(text: string): Fault[] {
  return text.split(",").map((name) => {
    const found = faults.find((fault) => fault.name === name.trim());
    if (found !== undefined) return found;
    throw new InvalidArgumentError(`There is no fault "${name}". Faults:\n${catalogue()}`);
  });
}

function typed(text: string): string[] {
  const all: readonly string[] = [...typeNames, ...flowNames];
  const said = text.split(",").map((name) => name.trim());
  if (said.every((name) => all.includes(name))) return said;
  throw new InvalidArgumentError(`Types: ${all.join(", ")}`);
}

const names = (of: object): string => Object.keys(of).join(", ");

function catalogue(): string {
  const width = Math.max(...faults.map(({ name }) => name.length));
  return faults.map(({ name, about }) => `  ${name.padEnd(width)}  ${about}`).join("\n");
}
