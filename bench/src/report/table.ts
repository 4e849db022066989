import type { Result } from "../interleave.js";
import { pretty } from "../say.js";
import type { Workload } from "../workload.js";
import { columns } from "./columns.js";

/** Medians with their spread, then how each subject was configured. */
export function tableOf(results: readonly Result[]): string {
  const head = ["workload", "subject", "median", "unit", "min - max", "ratio", "to"];
  const rows = results.map((r) => [
    r.workload.name,
    r.subject.name,
    pretty(r.value),
    r.workload.unit,
    `${pretty(r.min)} - ${pretty(r.max)}`,
    r.ratio === null ? "" : `${r.ratio.toFixed(2)}x`,
    baseOf(r.workload),
  ]);
  const table = columns([head, ...rows], [2, 4, 5]);
  return `${table}\n\n${factsOf(results)}\nHow each was set, and why:\n${configsOf(results)}\n`;
}

export function baseOf({ base, unit }: Workload): string {
  if (base === null) return "";
  if ("ideal" in base) return `the ideal ${pretty(base.ideal)} ${unit}`;
  return "subject" in base ? base.subject : `the lower of ${base.lowestOf.join(" and ")}`;
}

/** Each configuration once, with all who have it. */
function configsOf(results: readonly Result[]): string {
  const users = new Map<string, string[]>();
  for (const { workload, subject } of results) {
    const list = users.get(subject.config) ?? [];
    users.set(subject.config, [...list, `${workload.name} (${subject.name})`]);
  }
  return [...users].map(([config, names]) => `${config}:\n  ${names.join(", ")}`).join("\n");
}

function factsOf(results: readonly Result[]): string {
  return results
    .filter(({ facts }) => Object.keys(facts).length > 0)
    .map(({ workload, subject, facts }) => {
      const list = Object.entries(facts).map(([name, n]) => `${name} ${pretty(n)}`);
      return `${workload.name} (${subject.name}): ${list.join(", ")}\n`;
    })
    .join("");
}
