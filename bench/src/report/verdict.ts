import type { Result } from "../interleave.js";
import { pretty } from "../say.js";
import type { Target } from "../targets.js";
import { columns } from "./columns.js";

export interface Verdict {
  readonly target: Target;
  readonly result: Result;
  readonly passed: boolean;
}

/** Each target whose workload was measured, with what came out. */
export function judge(results: readonly Result[], targets: readonly Target[]): Verdict[] {
  return targets.flatMap((target) => {
    const result = results.find(
      (r) => r.workload.name === target.workload && r.subject.name === target.subject,
    );
    return result === undefined ? [] : [{ target, result, passed: passes(target, result) }];
  });
}

function passes(target: Target, result: Result): boolean {
  const measured = result[target.of] ?? Number.NaN;
  return measured >= (target.atLeast ?? measured) && measured <= (target.atMost ?? measured);
}

export function verdictTable(verdicts: readonly Verdict[]): string {
  const head = ["workload", "subject", "target", "measured", "median", "min - max", ""];
  const rows = verdicts.map(({ target, result, passed }) => [
    target.workload,
    target.subject,
    wanted(target, result),
    shown(target, result, result[target.of] ?? Number.NaN),
    `${pretty(result.value)} ${result.workload.unit}`,
    `${pretty(result.min)} - ${pretty(result.max)}`,
    passed ? "pass" : "FAIL",
  ]);
  const missed = verdicts.filter((v) => !v.passed).length;
  const sum = `${verdicts.length - missed} passed, ${missed} failed`;
  return `${columns([head, ...rows], [2, 3, 4, 5])}\n\n${sum}\n`;
}

function wanted(target: Target, result: Result): string {
  const { atLeast, atMost } = target;
  return atLeast === undefined
    ? `<= ${shown(target, result, atMost!)}`
    : `>= ${shown(target, result, atLeast)}`;
}

function shown({ of }: Target, { workload }: Result, n: number): string {
  return of === "ratio" ? `${n.toFixed(2)}x` : `${pretty(n)} ${workload.unit}`;
}
