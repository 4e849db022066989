import type { Result } from "../interleave.js";
import { baseOf } from "./table.js";

/** One line per subject. tasksPerSecond is null where something else was measured. */
export function jsonOf(results: readonly Result[]): string {
  return results.map((result) => `${JSON.stringify(lineOf(result))}\n`).join("");
}

function lineOf({ workload, subject, value, min, max, ratio, facts }: Result): object {
  return {
    workload: workload.name,
    subject: subject.name,
    tasksPerSecond: workload.unit === "tasks/s" ? Math.round(value) : null,
    ratio: ratio === null ? null : short(ratio),
    ratioTo: baseOf(workload) || null,
    unit: workload.unit,
    median: short(value),
    min: short(min),
    max: short(max),
    ...Object.fromEntries(Object.entries(facts).map(([name, n]) => [name, short(n)])),
  };
}

function short(n: number): number {
  return Number(n.toPrecision(5));
}
