import { UsageError, type Options } from "./options.js";
import type { Target } from "./targets.js";
import type { Workload } from "./workload.js";

/** The workloads that the command line asks for, with the subjects that it asks for. */
export function choose(
  { command, only, subjects }: Pick<Options, "command" | "only" | "subjects">,
  workloads: readonly Workload[],
  targets: readonly Target[],
): Workload[] {
  if (command === "plans") return [];
  const unknown = only.filter((name) => !workloads.some((w) => namesOf(w).includes(name)));
  if (unknown.length > 0) {
    const known = workloads.map((w) => w.name);
    throw new UsageError(`no workload ${unknown.join(", ")}: there are ${known.join(", ")}`);
  }
  const chosen = workloads
    .filter((w) => only.length === 0 || namesOf(w).some((name) => only.includes(name)))
    .filter((w) => command === "run" || targets.some(({ workload }) => namesOf(w).includes(workload)))
    .map((w) => withSubjects(w, subjects))
    .filter((w) => w.subjects.length > 0);
  if (chosen.length === 0) throw new UsageError("no workload is left to measure");
  return chosen;
}

/** Its own, and those of what else is read from the same measurements. */
function namesOf({ name, readings = [] }: Workload): string[] {
  return [name, ...readings.map(({ workload }) => workload)];
}

/** What others are compared to stays. */
function withSubjects(workload: Workload, wanted: readonly string[]): Workload {
  if (wanted.length === 0) return workload;
  const base = workload.base !== null && "subject" in workload.base ? workload.base.subject : null;
  const asked = workload.subjects.filter(({ who }) => wanted.some((w) => who.name.includes(w)));
  const kept = workload.subjects.filter((s) => asked.includes(s) || s.who.name === base);
  return { ...workload, subjects: asked.length === 0 ? [] : kept };
}

/** How many measurements that will be, probes included. */
export function measurementsOf(workloads: readonly Workload[], repetitions: number): number {
  return workloads.reduce((sum, { subjects, sizing }) => {
    const able = subjects.filter(({ cannot }) => cannot === null).length;
    const alike = sizing.by === "seconds" && sizing.alike === true;
    const probes = sizing.by === "seconds" ? (alike ? Math.min(1, able) : able) : 0;
    return sum + probes + able * repetitions;
  }, 0);
}
