import type { Ratios, Result } from "../result.js";
import { pretty } from "../say.js";
import type { Target } from "../targets.js";
import { columns } from "./columns.js";
import { factName, factText, RATIO_NAMES, ratioText, RATIOS } from "./words.js";

export interface Verdict {
  readonly target: Target;
  /** Null if the workload was measured without this subject. */
  readonly result: Result | null;
  /** Null if nothing came out. */
  readonly measured: number | null;
  readonly passed: boolean;
}

/** Each target whose workload was measured, with what came out. */
export function judge(results: readonly Result[], targets: readonly Target[]): Verdict[] {
  return targets.flatMap((target) => {
    const group = results.filter((r) => r.workload === target.workload);
    if (group.length === 0) return [];
    const result = group.find((r) => r.subject.name === target.subject) ?? null;
    const measured = result === null ? null : measuredOf(target, result);
    return [{ target, result, measured, passed: passes(target, measured) }];
  });
}

/** A target is about the value, a ratio, or a fact. */
function measuredOf(target: Target, result: Result): number | null {
  const of: string = target.of;
  if (of === "value") return result.value;
  return (isRatio(of) ? result.ratios[of] : result.facts[of]) ?? null;
}

function isRatio(of: string): of is keyof Ratios {
  return (RATIOS as readonly string[]).includes(of);
}

function passes({ atLeast, atMost }: Target, measured: number | null): boolean {
  if (measured === null || Number.isNaN(measured)) return false;
  return measured >= (atLeast ?? measured) && measured <= (atMost ?? measured);
}

export const VERDICT_HEAD = ["workload", "subject", "of", "target", "measured", "median", "min - max", ""] as const;

/** A row of the table, for the terminal and for the report. */
export function verdictRow({ target, result, measured, passed }: Verdict): string[] {
  return [
    target.workload,
    target.subject,
    aspectOf(target),
    wanted(target, result),
    measured === null ? "nothing" : shown(target, result, measured),
    result?.value == null ? "" : `${pretty(result.value)} ${result.unit}`,
    result?.min == null || result.max === null ? "" : `${pretty(result.min)} - ${pretty(result.max)}`,
    passed ? "pass" : "FAIL",
  ];
}

function aspectOf(target: Target): string {
  const of: string = target.of;
  if (of === "value") return "the median";
  return isRatio(of) ? `to ${RATIO_NAMES[of]}` : factName(of);
}

export function verdictSum(verdicts: readonly Verdict[]): string {
  const missed = verdicts.filter((v) => !v.passed).length;
  return `${verdicts.length - missed} passed, ${missed} failed`;
}

export function verdictTable(verdicts: readonly Verdict[]): string {
  const table = columns([VERDICT_HEAD, ...verdicts.map(verdictRow)], [3, 4, 5, 6]);
  return `${table}\n\n${verdictSum(verdicts)}\n`;
}

function wanted(target: Target, result: Result | null): string {
  const { atLeast, atMost } = target;
  const low = atLeast === undefined ? [] : [`>= ${shown(target, result, atLeast)}`];
  const high = atMost === undefined ? [] : [`<= ${shown(target, result, atMost)}`];
  return [...low, ...high].join(", ");
}

function shown(target: Target, result: Result | null, n: number): string {
  const of: string = target.of;
  if (isRatio(of)) return ratioText(n);
  return of === "value" && result !== null ? `${pretty(n)} ${result.unit}` : factText(n);
}
