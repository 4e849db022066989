import { presetPurposes, type PresetName } from "../config/presets.js";
import { table } from "../config/table.js";
import type { Sum } from "./arithmetic.js";
import type { PlanInput, Setting } from "./input.js";
import type { Plan } from "./plan.js";
import type { Simulation } from "./simulate/simulate.js";
import { count, number, percent, time } from "./words.js";

/** How text is highlighted; without a terminal it is not. */
interface Ink {
  title(text: string): string;
  good(text: string): string;
  bad(text: string): string;
}

/** A plan in readable form: the request, the arithmetic, the recommended settings, and the result of the simulation. */
export function linesOf(input: PlanInput, plan: Plan, simulation: Simulation, ink: Ink): string[] {
  return [
    ink.title(`Plan for ${workload(input)}`),
    "",
    ...arithmetic(plan.arithmetic),
    "",
    ...recommendation(input, plan, ink),
    "",
    ...simulated(input, plan, simulation, ink),
    ...plan.warnings.map(({ message }) => `${ink.bad("warning")} ${message}`),
  ];
}

function workload({ ratePerSecond, durations, ioShare, cores, steady }: PlanInput): string {
  const mean = time(durations.meanMs);
  const how = {
    constant: mean,
    exponential: `${mean} on average, exponentially distributed`,
    samples: `${mean} on average, p99 ${time(durations.p99Ms)} (${count(durations.samples, "sample")})`,
  }[durations.kind];
  const rate = `${number(ratePerSecond)} tasks/s${steady ? " at regular intervals" : ""}`;
  return `${rate} of ${how}, ${percent(ioShare)} I/O, on ${count(cores, "core")}`;
}

function arithmetic(sums: readonly Sum[]): string[] {
  const results = sums.map(({ value, unit }) => (unit === "ms" ? time(value) : `${number(value)} ${unit}`.trimEnd()));
  return columns(sums.map(({ name, formula }, at) => [`  ${name}`, results[at]!, `= ${formula}`]));
}

function recommendation(input: PlanInput, plan: Plan, ink: Ink): string[] {
  const { recommendation, nearestPreset } = plan;
  const { name, purpose, differences } = nearestPreset;
  const unlike = differences.length === 0 ? "the same" : differences.join(", ");
  return [
    ink.title(`Recommended: ${settingWords(recommendation)}`),
    ...columns([
      ["  set", environment(input, recommendation)],
      ["  nearest preset", `${name}: ${unlike}`],
      ["  its purpose", purpose],
      ["  rule of thumb", "claim loops: 1/2 to 1/3 of the permits if a claim takes one task; 1 if claims are batched"],
    ]),
  ];
}

function settingWords({ processes, permits, claimLoops, connections }: Setting): string {
  const parts = [count(permits, "permit"), count(claimLoops, "claim loop"), count(connections, "connection")];
  const each = processes === 1 ? " with" : ", each with";
  return `${count(processes, "process", "processes")}${each} ${parts.join(", ")}`;
}

function environment(input: PlanInput, { permits, claimLoops, connections }: Setting): string {
  const { env, default: usual } = table.client.apiConnections;
  const api = input.apiConnections === usual ? [] : [`${env}=${input.apiConnections}`];
  const { maxConcurrentTasks, claimBatchSize, claimLoops: loops, dbConnections } = table.worker;
  return [
    `${maxConcurrentTasks.env}=${permits}`,
    ...(input.batchSet ? [`${claimBatchSize.env}=${input.batch}`] : []),
    `${loops.env}=${claimLoops}`,
    `${dbConnections.env}=${connections}`,
    ...api,
  ].join(" ");
}

function simulated(input: PlanInput, plan: Plan, s: Simulation, ink: Ink): string[] {
  const { setting, recommendation } = plan;
  const asRecommended = JSON.stringify(setting) === JSON.stringify(recommendation);
  const what = asRecommended ? "as recommended" : `with ${settingWords(setting)}`;
  const growth = `the backlog grows by ${number(s.backlogGrowthPerSecond)} tasks/s`;
  const verdict = s.stable
    ? ink.good("stable")
    : ink.bad(`UNSTABLE: ${growth}, and ${number(s.waiting)} tasks wait at the end`);
  const preset = input.preset === null ? [] : [["  preset", presetWords(input.preset)]];
  return [
    ink.title(`Simulated ${what}: ${number(s.seconds)} s, seed ${s.seed}`),
    ...columns([
      ...preset,
      ["  load", verdict],
      ["  throughput", throughputWords(input, plan, s)],
      ["  queue wait", `p50 ${time(s.queueWaitMs.p50)}, p99 ${time(s.queueWaitMs.p99)}`],
      ["  in flight", `${number(s.inFlight.mean)} on average, ${number(s.inFlight.max)} at most`],
      ["  utilisation", utilisationWords(s)],
    ]),
  ];
}

function utilisationWords({ permitUtilisation, loopUtilisation, coreUtilisation }: Simulation): string {
  const [permits, loops, cores] = [permitUtilisation, loopUtilisation, coreUtilisation].map(percent);
  return `permits ${permits}, event loops ${loops}, cores ${cores}`;
}

function throughputWords(input: PlanInput, { capacity }: Plan, { throughputPerSecond }: Simulation): string {
  const bottleneck = capacity.bottleneck === "cpu" ? "CPU" : capacity.bottleneck;
  const done = `${number(throughputPerSecond)} of ${number(input.ratePerSecond)} tasks/s`;
  return `${done}; limited by ${bottleneck} to ${number(capacity.perSecond)} tasks/s`;
}

function presetWords(name: PresetName): string {
  return `${name}: ${presetPurposes[name]}`;
}

/** Aligns cells in columns; the last cell of a row takes the width it needs. */
function columns(rows: readonly (readonly string[])[]): string[] {
  const widths = rows[0]!.map((_, at) => Math.max(...rows.map((row) => row[at]!.length)));
  return rows.map((row) => row.map((cell, at) => (at === row.length - 1 ? cell : cell.padEnd(widths[at]!))).join("  "));
}
