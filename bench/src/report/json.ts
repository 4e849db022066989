import type { Result } from "../result.js";

/**
 * One line per subject. tasksPerSecond is null where something else was measured, or where the
 * subject cannot do it; then `cannot` says why.
 */
export function jsonOf(results: readonly Result[]): string {
  return results.map((result) => `${JSON.stringify(lineOf(result))}\n`).join("");
}

function lineOf(result: Result): object {
  const { subject, unit, value, ratios, base, facts, cannot } = result;
  return {
    workload: result.workload,
    subject: subject.name,
    tasksPerSecond: unit === "tasks/s" ? short(value) : null,
    ratioToBestPeer: short(ratios.bestPeer ?? null),
    ratioToPureSql: short(ratios.pureSql ?? null),
    ratioToBestPostgresPeer: short(ratios.bestPostgresPeer ?? null),
    ratioToBullmqRedis: short(ratios.bullmqRedis ?? null),
    ratioToBase: short(ratios.base ?? null),
    ratioToBaseCpu: short(ratios.baseCpu ?? null),
    base,
    unit,
    better: result.better,
    median: short(value),
    min: short(result.min),
    max: short(result.max),
    library: subject.library,
    variant: subject.variant,
    version: subject.version,
    store: subject.store,
    ...Object.fromEntries(Object.entries(facts).map(([name, n]) => [name, short(n)])),
    ...(cannot === undefined ? {} : { cannot }),
  };
}

/** Whole numbers stay whole; of others five digits are more than a measurement knows. */
function short(n: number | null): number | null {
  if (n === null) return null;
  return Math.abs(n) >= 10_000 ? Math.round(n) : Number(n.toPrecision(5));
}
