import { availableParallelism, loadavg } from "node:os";
import { median } from "./numbers.js";
import { pretty, say } from "./say.js";
import type { Base, Bench, Sample, Subject, Workload } from "./workload.js";

/** What came out for one subject: medians over the repetitions. */
export interface Result {
  readonly workload: Workload;
  readonly subject: Subject;
  readonly value: number;
  readonly min: number;
  readonly max: number;
  readonly ratio: number | null;
  readonly facts: Readonly<Record<string, number>>;
}

/**
 * Measures the subjects of a workload in turns, so that whatever else the machine does meanwhile
 * meets all of them. Every other repetition goes backwards, so that nobody is always the first.
 */
export async function interleave(
  bench: Bench,
  workload: Workload,
  repetitions: number,
): Promise<Result[]> {
  const samples = new Map<Subject, Sample[]>(workload.subjects.map((s) => [s, []]));
  say(`\n${workload.name}: ${workload.about}${busyness()}`);
  for (let rep = 1; rep <= repetitions; rep++) {
    const turn = rep % 2 === 1 ? workload.subjects : workload.subjects.toReversed();
    for (const subject of turn) {
      const sample = await subject.measure(bench);
      samples.get(subject)!.push(sample);
      say(
        `  ${rep}/${repetitions}  ${subject.name}: ${pretty(sample.value)} ${workload.unit}${factsOf(sample)}`,
      );
    }
  }
  return workload.subjects.map((subject) => resultOf(workload, subject, samples));
}

function resultOf(
  workload: Workload,
  subject: Subject,
  all: ReadonlyMap<Subject, readonly Sample[]>,
): Result {
  const own = all.get(subject)!;
  const values = own.map((s) => s.value);
  return {
    workload,
    subject,
    value: median(values),
    min: Math.min(...values),
    max: Math.max(...values),
    ratio: ratioOf(workload, values, all),
    facts: medians(own),
  };
}

/** The median of the ratios within each repetition: what drifts between repetitions cancels out. */
function ratioOf(
  { base }: Workload,
  values: readonly number[],
  all: ReadonlyMap<Subject, readonly Sample[]>,
): number | null {
  if (base === null) return null;
  return median(values.map((value, rep) => value / baseValue(base, all, rep)));
}

function baseValue(
  base: NonNullable<Base>,
  all: ReadonlyMap<Subject, readonly Sample[]>,
  rep: number,
): number {
  if ("ideal" in base) return base.ideal;
  const names = "subject" in base ? [base.subject] : base.lowestOf;
  const values = [...all].filter(([s]) => names.includes(s.name)).map(([, x]) => x[rep]!.value);
  return Math.min(...values);
}

function medians(samples: readonly Sample[]): Record<string, number> {
  const names = Object.keys(samples[0]?.facts ?? {});
  return Object.fromEntries(
    names.map((name) => [name, median(samples.map((s) => s.facts?.[name] ?? Number.NaN))]),
  );
}

function factsOf({ facts = {} }: Sample): string {
  const list = Object.entries(facts).map(([name, n]) => `${name} ${pretty(n)}`);
  return list.length === 0 ? "" : `  (${list.join(", ")})`;
}

/** Other work on the machine is the usual reason for numbers that nobody can repeat. */
function busyness(): string {
  const [load = 0] = loadavg();
  const cores = availableParallelism();
  return load > cores ? ` (load ${pretty(load)} on ${cores} cores: is somebody else at work?)` : "";
}
