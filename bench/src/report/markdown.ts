import type { About, Result } from "../result.js";
import { pretty } from "../say.js";
import { configsOf } from "./configs.js";
import { verdictRow, verdictSum, VERDICT_HEAD, type Verdict } from "./verdict.js";
import { byWorkload, factName, factText, isMeasured, isSluice, ranked, RATIO_NAMES, RATIOS } from "./words.js";
import { ratioText, spreadText, type Measured } from "./words.js";

/** Optional parts of a report besides measurements. */
export interface More {
  /** The targets, and whether they were reached. */
  readonly verdicts?: readonly Verdict[];
  /** Markdown of what the query plans show. */
  readonly plans?: string;
  /** Whether a chart lies beside the report. */
  readonly chart?: boolean;
}

/** The readable report: the machine and versions, tables, configurations and unsupported workloads. */
export function markdownOf(results: readonly Result[], about: About, more: More = {}): string {
  const parts = [
    `# Bench of ${about.at.slice(0, 10)}`,
    headOf(about),
    ...(more.chart === true ? ["![The main workloads](chart.svg)"] : []),
    "## Results",
    READING,
    ...[...byWorkload(results).values()].map(workloadOf),
    "## Configuration of each subject",
    configList(results),
    ...cannotSection(results),
    ...verdictSection(more.verdicts ?? []),
    ...(more.plans === undefined ? [] : ["## Query plans", more.plans.trimEnd()]),
  ];
  return `${parts.join("\n\n")}\n`;
}

const READING =
  "Medians over the repetitions, with the smallest and the largest value. A ratio is the median of the ratios within each repetition; CPU is in milliseconds per 1,000 tasks.";

function headOf(about: About): string {
  const settings = Object.entries(about.settings).map(([name, value]) => `${name} ${value}`);
  const libraries = Object.entries(about.versions).map(([name, version]) => `${name} ${version}`);
  const rows = [
    ["command", `\`${about.command}\``],
    ["started", about.at],
    ["machine", `${about.cores} cores, ${about.cpu}, ${pretty(about.memoryMb / 1_024)} GB of memory`],
    ["Node", about.node],
    ["PostgreSQL", [about.postgres, ...settings].join(", ")],
    ["Redis", about.redis ?? "not used"],
    ["libraries", libraries.join(", ")],
    ["repetitions", `${about.repetitions}, each sized to take ${pretty(about.seconds)} s`],
  ];
  const warning = about.quick
    ? ["**A quick run: it only shows that the bench works; its numbers prove nothing.**"]
    : [];
  return [...warning, tableOf(["", ""], rows)].join("\n\n");
}

function workloadOf(group: readonly Result[]): string {
  const [first] = group as [Result];
  const measured = ranked(group);
  const less = first.better === "less" ? " Less is better." : "";
  const title = `### ${first.workload}\n\n${capital(first.about)}.${less}`;
  if (measured.length === 0) return `${title}\n\nNo subject supports it.`;
  const columns = columnsOf(measured).filter(({ cell }) => measured.some((r) => cell(r) !== ""));
  const rows = measured.map((r) => columns.map(({ cell }) => cell(r)));
  return `${title}\n\n${tableOf(
    columns.map(({ head }) => head),
    rows,
    true,
  )}`;
}

interface Column {
  readonly head: string;
  readonly cell: (result: Measured) => string;
}

// The rest of the facts follow in the order in which they come.
const FIRST_FACTS = ["cpuUsPerTask", "p50Ms", "p95Ms", "p99Ms", "inversions", "overlaps", "peak", "peakPerKey"];
const LAST_FACTS = ["nodeCpuMsPer1000", "databaseCpuMsPer1000", "walBytesPerTask", "rssMb"];

function columnsOf(measured: readonly Measured[]): Column[] {
  const [first] = measured as [Measured];
  const named = [...FIRST_FACTS, ...LAST_FACTS];
  const others = [...new Set(measured.flatMap(({ facts }) => Object.keys(facts)))].filter(
    (name) => !named.includes(name),
  );
  return [
    { head: "subject", cell: nameOf },
    { head: first.unit, cell: ({ value }) => pretty(value) },
    { head: "min - max", cell: spreadText },
    ...RATIOS.map((ratio) => ({
      head: `to ${ratio === "base" ? (first.base ?? "its base") : RATIO_NAMES[ratio]}`,
      cell: ({ ratios }: Measured) => ratioText(ratios[ratio]),
    })),
    ...[...FIRST_FACTS, ...LAST_FACTS, ...others].map((name) => ({
      head: factName(name),
      cell: ({ facts }: Measured) => (facts[name] === undefined ? "" : factText(facts[name])),
    })),
  ];
}

function nameOf(result: Measured): string {
  return isSluice(result) ? `**${result.subject.name}**` : result.subject.name;
}

function configList(results: readonly Result[]): string {
  return configsOf(results)
    .map(({ who, config }) => `- **${who}**: ${config}`)
    .join("\n");
}

function cannotSection(results: readonly Result[]): string[] {
  const reasons = new Map<string, string[]>();
  for (const result of results.filter((r) => !isMeasured(r))) {
    const key = `${result.subject.name}\n${result.cannot ?? "no result"}`;
    reasons.set(key, [...(reasons.get(key) ?? []), result.workload]);
  }
  if (reasons.size === 0) return [];
  const lines = [...reasons].map(([key, workloads]) => {
    const [name, reason] = key.split("\n");
    return `- **${name}** (${workloads.join(", ")}): ${reason}`;
  });
  return ["## Unsupported workloads", lines.join("\n")];
}

function verdictSection(verdicts: readonly Verdict[]): string[] {
  if (verdicts.length === 0) return [];
  return ["## Targets", tableOf(VERDICT_HEAD, verdicts.map(verdictRow)), verdictSum(verdicts)];
}

/** right: whether all columns but the first are numbers. */
function tableOf(head: readonly string[], rows: readonly (readonly string[])[], right = false): string {
  const rule = head.map((_, i) => (right && i > 0 ? "---:" : "---"));
  const line = (cells: readonly string[]): string => `| ${cells.map(escaped).join(" | ")} |`;
  return [line(head), line(rule), ...rows.map(line)].join("\n");
}

/** A cell ends at a bar or at the end of the line. */
function escaped(cell: string): string {
  return cell.replaceAll("|", "\\|").replaceAll("\n", " ");
}

function capital(text: string): string {
  return text.charAt(0).toUpperCase() + text.slice(1);
}
