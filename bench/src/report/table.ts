import type { Result } from "../result.js";
import { pretty } from "../say.js";
import { columns } from "./columns.js";
import { configsOf } from "./configs.js";
import { byWorkload, factName, factText, isMeasured, ranked, RATIO_NAMES, RATIOS } from "./words.js";
import { ratioText, spreadText, type Measured } from "./words.js";

// Shown beside the rate: it is reproducible on a busy machine, where a rate is not.
const CPU = "cpuUsPerTask";

/** For the terminal: medians with their spread, then facts, then how each subject was configured. */
export function tableOf(results: readonly Result[]): string {
  const measured = [...byWorkload(results).values()].flatMap(ranked);
  const facts = measured.map(factsOf).join("");
  return `${mainTable(measured)}\n\n${facts}${cannotOf(results)}\nConfiguration of each subject:\n${configLines(results)}\n`;
}

function mainTable(measured: readonly Measured[]): string {
  const used = RATIOS.filter((ratio) => measured.some((r) => r.ratios[ratio] !== undefined));
  const head = ["workload", "subject", "median", "unit", "min - max", factName(CPU)];
  const rows = measured.map((r) => [
    r.workload,
    r.subject.name,
    pretty(r.value),
    r.unit,
    spreadText(r),
    r.facts[CPU] === undefined ? "" : factText(r.facts[CPU]),
    ...used.map((ratio) => ratioText(r.ratios[ratio])),
    r.base ?? "",
  ]);
  const heads = [...head, ...used.map((ratio) => `to ${RATIO_NAMES[ratio]}`), "base is"];
  return columns([heads, ...rows], [2, 4, 5, ...used.map((_, i) => head.length + i)]);
}

function factsOf({ workload, subject, facts }: Measured): string {
  const others = Object.entries(facts).filter(([name]) => name !== CPU);
  const list = others.map(([name, n]) => `${factName(name)}: ${factText(n)}`);
  return list.length === 0 ? "" : `${workload} (${subject.name}): ${list.join("; ")}\n`;
}

function cannotOf(results: readonly Result[]): string {
  return results
    .filter((r) => !isMeasured(r))
    .map((r) => `${r.workload} (${r.subject.name}): not supported: ${r.cannot ?? "no result"}\n`)
    .join("");
}

function configLines(results: readonly Result[]): string {
  return configsOf(results)
    .map(({ who, config }) => `${who}:\n  ${config}`)
    .join("\n");
}
