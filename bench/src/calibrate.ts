import type { Sample } from "./result.js";
import type { Bench, Sizing } from "./workload.js";

const TASKS_MIN = 500;
const TASKS_MAX = 300_000;
/** The backlog of a probe. */
export const PROBE_TASKS = 2_000;
// Sizes come from few steps, so that subjects of like speed share a filled database.
const STEPS = [1, 1.5, 2, 3, 5, 7, 10];

interface Bounds {
  readonly multipleOf?: number;
  readonly times?: number;
  readonly min?: number;
}

/** How many tasks last so long at this rate. */
export function tasksFor(
  perSecond: number,
  seconds: number,
  { multipleOf = 1, times = 1, min = TASKS_MIN }: Bounds = {},
): number {
  const wanted = Math.min(TASKS_MAX * times, Math.max(min, perSecond * seconds * times));
  return Math.max(1, Math.round(onStep(wanted) / multipleOf)) * multipleOf;
}

/** The nearest of the steps, by ratio. */
function onStep(n: number): number {
  const power = 10 ** Math.floor(Math.log10(n));
  const distance = (step: number): number => Math.abs(Math.log(n / (step * power)));
  return STEPS.toSorted((a, b) => distance(a) - distance(b))[0]! * power;
}

/** The number of tasks that needs no probe; null: it does. */
export function fixedSize(sizing: Sizing, bench: Pick<Bench, "quick" | "seconds">): number | null {
  if (sizing.by === "seconds") return null;
  if (sizing.by === "rate") return Math.round(sizing.perSecond * bench.seconds);
  return bench.quick ? (sizing.quick ?? sizing.tasks) : sizing.tasks;
}

/** Whether a probe says little about a measurement of that length. */
export function isTooShort({ facts }: Sample, seconds: number): boolean {
  return (facts["seconds"] ?? seconds) < seconds / 4;
}

/** A probe may take so long, whoever it is: who is hopelessly slow is cut off. */
export function probeDeadlineMs(seconds: number): number {
  return Math.max(2_000, seconds * 1_000);
}

/** A measurement that takes so much longer than its probe foretold is cut off. */
export function deadlineMs(seconds: number): number {
  return Math.max(10_000, seconds * 5_000);
}
