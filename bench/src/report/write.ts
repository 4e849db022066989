import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { About, Result } from "../result.js";
import { jsonOf } from "./json.js";
import { markdownOf, type More } from "./markdown.js";
import { svgOf } from "./svg.js";

/** Writes results.jsonl, report.md and, where a peer was measured, chart.svg. */
export function writeReport(
  folder: string,
  results: readonly Result[],
  about: About,
  more: Omit<More, "chart"> = {},
): void {
  mkdirSync(folder, { recursive: true });
  const chart = svgOf(results, about);
  const report = markdownOf(results, about, { ...more, chart: chart !== null });
  writeFileSync(join(folder, "results.jsonl"), jsonOf(results));
  writeFileSync(join(folder, "report.md"), report);
  if (chart !== null) writeFileSync(join(folder, "chart.svg"), chart);
}
