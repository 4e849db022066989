import { readFileSync, statSync } from "node:fs";
import { availableParallelism } from "node:os";
import { Command } from "commander";
import { presetNames, presetOf, presetPurposes } from "../config/presets.js";
import { table } from "../config/table.js";
import { BATCH_START } from "../core/claim-policy.js";
import { SluiceError } from "../core/error.js";
import { checkInteger, checkNumber, type Range } from "../core/number.js";
import { checkOneOf } from "../core/option.js";
import { quote } from "../core/quote.js";
import { constantDurations, exponentialDurations, sampledDurations, type Durations } from "../plan/durations.js";
import { planDefaults, planRanges, type PlanInput } from "../plan/input.js";
import { linesOf } from "../plan/lines.js";
import { planFor, secondsFor, simulationOf } from "../plan/plan.js";
import { parseDuration, parseRate, parseSamples } from "../plan/quantity.js";
import { simulate } from "../plan/simulate/simulate.js";
import { bold, green, red } from "./colors.js";
import { printResult } from "./print.js";

/** The flags as given on the command line: texts and switches. */
type PlanFlags = Readonly<Record<string, string | boolean | undefined>>;

const FILE_BYTES_MAX = 64 * 1024 * 1024;
const PROGRESS_AFTER_MS = 1_000;
const PROGRESS_EVERY_MS = 200;

const ink = { title: bold, good: green, bad: red };

/** `sluice plan`: which setting carries a workload, why, and its results in a simulation. */
export function planCommand(): Command {
  return new Command("plan")
    .summary("recommend and simulate settings for a workload")
    .description(
      "Recommends processes, permits, claim loops and connections for a workload,\n" +
        "shows the arithmetic and simulates the result. Needs no database.",
    )
    .requiredOption("--rate <rate>", "arrival rate of tasks: 200 or 200/s, 12000/min, 5000/h")
    .option("--duration <time>", "how long a task takes, in us, ms, s, min (or m) or h: 80ms, 1.5s")
    .option("--duration-file <file>", "measured durations: ms per line, or JSON with durationMs")
    .option("--spread <kind>", "distribution of durations: constant, or exponential with mean --duration", "constant")
    .option("--io <share>", "share of the duration spent waiting, 0 to 1: 0.9")
    .option("--io-bound", "the same as --io 1")
    .option("--cpu-bound", "the same as --io 0")
    .option("--cores <n>", "cores for the workers; default: all cores of this machine")
    .option("--steady", "tasks arrive at regular intervals, not at random")
    .option("--utilisation <share>", "target utilisation of permits and cores", "0.7")
    .option(
      "--batch <n>",
      `maximum tasks per claim; default: the preset's, else the initial batch of a worker, ${BATCH_START}`,
    )
    .option("--claim-ms <ms>", "round trip of a claim", String(planDefaults.claimMs))
    .option("--engine-ms <ms>", "JavaScript time per task outside its handler", String(planDefaults.engineMs))
    .option("--api-buffer <n>", "connections for enqueue and queries", String(table.client.apiConnections.default))
    .option(
      "--handler-connections <n>",
      `connections for handler transactions; default: ${planDefaults.handlerConnections}`,
    )
    .option("--max-connections <n>", "max_connections of the server", String(planDefaults.maxConnections))
    .option("--preset <name>", `evaluate a preset: ${presetNames.join(", ")}`)
    .option("--permits <n>", "evaluate this many permits per process")
    .option("--loops <n>", "evaluate this many claim loops per process")
    .option("--connections <n>", "evaluate this many connections per process")
    .option("--processes <n>", "plan for this many processes")
    .option("--seconds <n>", "how long to simulate; default: 60, more for long tasks")
    .option("--seed <n>", "seed of the simulation; the same seed gives the same result", String(planDefaults.seed))
    .option("--json", "print one line of JSON")
    .addHelpText(
      "after",
      `
Examples:
  $ sluice plan --rate 200 --duration 80ms --io 0.9 --cores 4
  $ sluice plan --rate 12000/min --duration-file samples.txt --io-bound --permits 20 --json

Presets:
${presetNames.map((name) => `  ${name.padEnd(12)}${presetPurposes[name]}`).join("\n")}

The JSON: {"inputs":{...},"recommendation":{"processes":...,"permits":...},"arithmetic":[...],
"nearestPreset":{...},"setting":{...},"capacity":{...},"warnings":[...],"simulation":{...}}`,
    )
    .action(runPlan);
}

function runPlan(flags: PlanFlags): void {
  const input = inputOf(flags);
  const plan = planFor(input);
  const seconds = optional(flags, "seconds", planRanges.seconds, checkNumber) ?? secondsFor(input);
  const seed = required(flags, "seed", planRanges.seed, checkInteger);
  const asked = simulationOf(input, plan.setting, { seconds, seed });
  const progress = progressOn(process.stderr);
  const simulation = simulate(asked, progress.tell);
  progress.end();
  const { durations, ...rest } = input;
  const { draw: _, ...duration } = durations;
  const result = { inputs: { ...rest, duration, seconds, seed }, ...plan, simulation };
  printResult(result, linesOf(input, plan, simulation, ink), flags["json"] === true);
}

function inputOf(flags: PlanFlags): PlanInput {
  const { worker, client } = table;
  const given = {
    permits: optional(flags, "permits", worker.maxConcurrentTasks, checkInteger),
    claimLoops: optional(flags, "loops", worker.claimLoops, checkInteger),
    connections: optional(flags, "connections", worker.dbConnections, checkInteger),
    processes: optional(flags, "processes", planRanges.processes, checkInteger),
  };
  const named = flags["preset"];
  const preset = named === undefined ? null : checkOneOf("--preset", named, presetNames);
  const batch =
    optional(flags, "batch", worker.claimBatchSize, checkInteger) ?? presetOf(preset ?? "default").claimBatchSize;
  return {
    ratePerSecond: parseRate("--rate", flags["rate"] as string),
    steady: flags["steady"] === true,
    durations: durationsOf(flags),
    ioShare: ioShareOf(flags),
    cores: optional(flags, "cores", planRanges.cores, checkInteger) ?? availableParallelism(),
    batch: batch ?? BATCH_START,
    batchSet: batch !== undefined,
    claimMs: required(flags, "claimMs", planRanges.claimMs, checkNumber),
    engineMs: required(flags, "engineMs", planRanges.engineMs, checkNumber),
    utilisation: required(flags, "utilisation", planRanges.utilisation, checkNumber),
    apiConnections: required(flags, "apiBuffer", client.apiConnections, checkInteger),
    handlerConnections: optional(flags, "handlerConnections", planRanges.handlerConnections, checkInteger) ?? null,
    maxConnections: required(flags, "maxConnections", planRanges.maxConnections, checkInteger),
    given: Object.fromEntries(Object.entries(given).filter(([, n]) => n !== undefined)),
    preset,
  };
}

type Check = (option: string, value: unknown, range: Range) => number;

function required(flags: PlanFlags, flag: string, range: Range, check: Check): number {
  const text = flags[flag] as string;
  const option = `--${flag.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;
  // Anything that is not a number appears in the error as written.
  return check(option, /^(\d{1,15}(\.\d{1,9})?|\.\d{1,9})$/.test(text) ? Number(text) : text, range);
}

function optional(flags: PlanFlags, flag: string, range: Range, check: Check): number | undefined {
  return flags[flag] === undefined ? undefined : required(flags, flag, range, check);
}

function durationsOf({ duration, durationFile, spread }: PlanFlags): Durations {
  const kind = checkOneOf("--spread", spread, ["constant", "exponential"]);
  if ((duration === undefined) === (durationFile === undefined))
    throw usage("pass either --duration or --duration-file: how long a task takes");
  if (durationFile !== undefined) {
    if (kind !== "constant")
      throw usage("--spread needs --duration: the samples of --duration-file have their own distribution");
    return sampledDurations(parseSamples(durationFile as string, textOf(durationFile as string)));
  }
  const ms = parseDuration("--duration", duration as string);
  return kind === "constant" ? constantDurations(ms) : exponentialDurations(ms);
}

function ioShareOf(flags: PlanFlags): number {
  const { io, ioBound, cpuBound } = flags;
  const said = [io, ioBound, cpuBound].filter((flag) => flag !== undefined);
  if (said.length !== 1)
    throw usage("pass one of --io, --io-bound and --cpu-bound: how much of its time a task waits for I/O");
  if (io === undefined) return ioBound === true ? 1 : 0;
  return required(flags, "io", planRanges.ioShare, checkNumber);
}

function textOf(file: string): string {
  let problem: string;
  try {
    if (statSync(file).size <= FILE_BYTES_MAX) return readFileSync(file, "utf8");
    problem = `it is larger than ${FILE_BYTES_MAX} bytes`;
  } catch (e) {
    problem = (e as Error).message;
  }
  throw usage(`--duration-file ${quote(file)} cannot be read: ${problem}`);
}

function usage(message: string): SluiceError {
  return new SluiceError("invalid_option", message);
}

interface Progress {
  tell(this: void, share: number): void;
  end(): void;
}

/** A progress line that is overwritten in place. It appears only if the simulation takes long enough to need one. */
function progressOn(out: NodeJS.WriteStream): Progress {
  let nextMs = performance.now() + PROGRESS_AFTER_MS;
  let told = false;
  return {
    tell(share) {
      if (!out.isTTY || performance.now() < nextMs) return;
      nextMs = performance.now() + PROGRESS_EVERY_MS;
      told = true;
      out.write(`\rsimulating: ${Math.floor(share * 100)} %`);
    },
    end() {
      if (told) out.write("\r\u001b[K");
    },
  };
}
