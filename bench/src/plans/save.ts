import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { say } from "../say.js";
import type { Finding } from "./findings.js";
import { scenarios } from "./scenario.js";
import { findingsOf, seeScenario, type Source } from "./see.js";
import type { ScenarioSeen } from "./seen.js";
import { scenarioText, summaryText } from "./text.js";

export interface PlansSaved {
  /** Empty: nothing that grows with the backlog, and slots are taken and given back in time. */
  readonly findings: readonly Finding[];
  /** Markdown. */
  readonly summary: string;
}

export interface PlanOptions {
  /** How many tasks wait. */
  readonly pending?: number;
  readonly tell?: (line: string) => void;
}

const PENDING = 1_000_000;

/**
 * Claims from each backlog as a worker does, and saves what the database did for it: a file of plans per
 * scenario and a summary, in `plans` below the folder.
 */
export async function savePlans(
  databases: Source,
  folder: string,
  { pending = PENDING, tell = say }: PlanOptions = {},
): Promise<PlansSaved> {
  const below = join(folder, "plans");
  mkdirSync(below, { recursive: true });
  const seen: ScenarioSeen[] = [];
  for (const scenario of scenarios) {
    tell(`\nplans: ${scenario.name}, ${pending.toLocaleString("en")} tasks of ${scenario.about}`);
    const one = await seeScenario(databases, scenario, pending);
    const text = scenarioText(one, pending, databases.version);
    writeFileSync(join(below, `${scenario.name}.txt`), text);
    seen.push(one);
  }
  const findings = seen.flatMap(findingsOf);
  const summary = summaryText(seen, findings, pending);
  writeFileSync(join(below, "summary.md"), summary);
  return { findings, summary };
}
