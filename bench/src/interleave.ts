import { availableParallelism, loadavg } from "node:os";
import { deadlineMs, fixedSize, isTooShort, PROBE_TASKS, probeDeadlineMs, tasksFor } from "./calibrate.js";
import { CannotError } from "./once.js";
import type { Progress } from "./progress.js";
import { resultsOf } from "./results.js";
import type { Result, Sample } from "./result.js";
import { pretty, say } from "./say.js";
import type { Bench, Sizing, Subject, Workload } from "./workload.js";

/** What became of a subject so far. */
export interface Entry {
  readonly subject: Subject;
  readonly samples: Sample[];
  tasks: number;
  /** Why it takes no part, or no longer. */
  cannot: string | null;
}

/**
 * Measures the subjects of a workload in turns, so that whatever else the machine does meanwhile
 * meets all of them. Every other repetition goes backwards, so that nobody is always the first.
 */
export async function interleave(
  bench: Bench,
  workload: Workload,
  repetitions: number,
  progress: Progress,
): Promise<Result[]> {
  say(`\n${workload.name}: ${workload.about}${busyness()}`);
  const entries = workload.subjects.map(entryOf);
  for (const { subject, cannot } of entries) if (cannot !== null) say(`  ${subject.who.name}: cannot, ${cannot}`);
  await calibrate(bench, workload, entries, progress);
  for (let rep = 1; rep <= repetitions; rep++) {
    for (const entry of rep % 2 === 1 ? entries : entries.toReversed())
      await measure(bench, workload, entry, progress, `${rep}/${repetitions}`);
  }
  return resultsOf(workload, entries);
}

function entryOf(subject: Subject): Entry {
  return { subject, samples: [], tasks: 0, cannot: subject.cannot };
}

/** Sizes the backlogs by what a probe shows, which is also the warm-up. */
async function calibrate(
  bench: Bench,
  { sizing, unit }: Workload,
  entries: readonly Entry[],
  progress: Progress,
): Promise<void> {
  const fixed = fixedSize(sizing, bench);
  let alike: number | null = null;
  for (const entry of entries) {
    if (entry.cannot !== null) continue;
    entry.tasks = fixed ?? alike ?? 0;
    if (sizing.by !== "seconds" || entry.tasks > 0) continue;
    const rate = await probe(bench, sizing, entry);
    progress.tick();
    if (rate === null) continue;
    entry.tasks = tasksFor(rate, bench.seconds, sizing);
    const found = `${pretty(rate)} ${unit}, so ${pretty(entry.tasks)} tasks`;
    say(`  ${progress.text()}  probe  ${entry.subject.who.name}: ${found}`);
    if (sizing.alike === true) alike = entry.tasks;
  }
}

/**
 * Tasks per second with a small backlog. Where that was over at once it was mostly the begin, which
 * is slower: then once more, with a backlog that lasts.
 */
async function probe(
  bench: Bench,
  { multipleOf = 1 }: Sizing & { by: "seconds" },
  entry: Entry,
): Promise<number | null> {
  const measured = (tasks: number): Promise<Sample | null> =>
    attempt(bench, entry, () => entry.subject.measure(bench, tasks, probeDeadlineMs(bench.seconds)));
  const first = await measured(Math.max(PROBE_TASKS, multipleOf));
  if (first === null || !isTooShort(first, bench.seconds)) return first?.value ?? null;
  const second = await measured(tasksFor(first.value, bench.seconds / 2, { multipleOf }));
  return second?.value ?? null;
}

async function measure(
  bench: Bench,
  { unit, sizing }: Workload,
  entry: Entry,
  progress: Progress,
  turn: string,
): Promise<void> {
  if (entry.cannot !== null) return;
  const times = sizing.by === "seconds" ? (sizing.times ?? 1) : 1;
  const limitMs = deadlineMs(bench.seconds * times);
  const sample = await attempt(bench, entry, async () => {
    const found = await entry.subject.measure(bench, entry.tasks, limitMs);
    if (found.value === 0) throw new Error(`no task ended within ${limitMs / 1_000} s`);
    return found;
  });
  progress.tick();
  if (sample === null) return;
  entry.samples.push(sample);
  const facts = factsOf(sample);
  say(`  ${progress.text()}  ${turn}  ${entry.subject.who.name}: ${pretty(sample.value)} ${unit}${facts}`);
}

/** One subject that fails must not take the whole run with it; what it has so far is void. */
async function attempt({ interrupted }: Bench, entry: Entry, work: () => Promise<Sample>): Promise<Sample | null> {
  try {
    return await work();
  } catch (e) {
    if (interrupted.aborted) throw e;
    const { message } = e as Error;
    entry.cannot = e instanceof CannotError ? message : `failed: ${message}`;
    say(`  ${entry.subject.who.name}: cannot, ${entry.cannot}`);
    return null;
  }
}

function factsOf({ facts }: Sample): string {
  const list = Object.entries(facts).map(([name, n]) => `${name} ${pretty(n)}`);
  return list.length === 0 ? "" : `  (${list.join(", ")})`;
}

/** Other work on the machine is the usual reason for numbers that nobody can repeat. */
function busyness(): string {
  const [load = 0] = loadavg();
  const cores = availableParallelism();
  return load > cores ? ` (load ${pretty(load)} on ${cores} cores: is another program running?)` : "";
}
