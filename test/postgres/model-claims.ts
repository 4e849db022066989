import { compareTurns, type Limit, type Task } from "./model-terms.js";

/** The input of a claim. */
export interface Totals {
  readonly running: readonly Task[];
  readonly gatesOf: (t: Task) => readonly Limit[];
  readonly number: (limit: Limit) => number;
}

/**
 * The ids of what a claim takes: the best that fit. Where tasks pass several totals at once and some are
 * full, the store may leave room unused until its next claim, or use it for another kind: right too.
 */
export function claimed(totals: Totals, ready: readonly Task[], n: number, got: readonly number[]): readonly number[] {
  const best = bestOf(totals, ready, n);
  const plain = ready.every((t) => totals.gatesOf(t).length <= 1);
  const roomy = best.every((t, i) => t === ready[i]) && best.length === Math.min(n, ready.length);
  const exact = plain || roomy;
  const right = exact ? false : got.length <= n && admissible(totals, ready, best.length > 0, got);
  return right ? got : best.map((t) => t.id);
}

function bestOf(totals: Totals, ready: readonly Task[], n: number): Task[] {
  const taken: Task[] = [];
  for (const t of ready) if (taken.length < n && fits(totals, [...taken, t], t)) taken.push(t);
  return taken;
}

/** Whether these tasks may start at once by the totals of one of them. */
function fits({ running, gatesOf, number }: Totals, taken: readonly Task[], t: Task): boolean {
  const all = [...running, ...taken];
  return gatesOf(t).every((gate) => all.filter((x) => gatesOf(x).includes(gate)).length <= number(gate));
}

/** Within the totals, the first of each kind before the second, and not nothing where something fits. */
function admissible(totals: Totals, ready: readonly Task[], some: boolean, got: readonly number[]): boolean {
  const taken = ready.filter((t) => got.includes(t.id));
  if (taken.length !== got.length || (some && got.length === 0)) return false;
  const kind = (t: Task): string => `${t.stream} ${t.totals.join("+")}`;
  const jumped = (t: Task): boolean =>
    !taken.includes(t) && taken.some((x) => kind(x) === kind(t) && compareTurns(t, x) < 0);
  return !ready.some(jumped) && taken.every((t) => fits(totals, taken, t));
}
