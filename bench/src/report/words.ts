import type { Ratios, Result } from "../result.js";
import { pretty } from "../say.js";

/** A result of a subject that supports the workload. */
export type Measured = Result & {
  readonly value: number;
  readonly min: number;
  readonly max: number;
};

export function isMeasured(result: Result): result is Measured {
  return result.value !== null && result.min !== null && result.max !== null;
}

/** Sluice itself. Every library other than Sluice and pure SQL is a peer. */
export function isSluice({ subject }: Result): boolean {
  return subject.library === "sluice";
}

export function isPureSql({ subject }: Result): boolean {
  return subject.library === "pure-sql";
}

/** The results of each workload, in the order in which they were measured. */
export function byWorkload(results: readonly Result[]): ReadonlyMap<string, readonly Result[]> {
  const groups = new Map<string, Result[]>();
  for (const result of results) {
    const group = groups.get(result.workload);
    if (group === undefined) groups.set(result.workload, [result]);
    else group.push(result);
  }
  return groups;
}

/** The measured results, the best first. */
export function ranked(results: readonly Result[]): Measured[] {
  return results.filter(isMeasured).toSorted((a, b) => (a.better === "more" ? b.value - a.value : a.value - b.value));
}

/** What a ratio refers to, for the heads of columns. */
export const RATIO_NAMES: Readonly<Record<keyof Ratios, string>> = {
  bestPeer: "best peer",
  bestPostgresPeer: "best PostgreSQL peer",
  bullmqRedis: "BullMQ on Redis",
  pureSql: "pure SQL",
  base: "base",
  baseCpu: "base in CPU per task",
};

export const RATIOS = Object.keys(RATIO_NAMES) as readonly (keyof Ratios)[];

export function ratioText(ratio: number | undefined): string {
  return ratio === undefined ? "" : `${ratio.toFixed(2)}x`;
}

export function spreadText({ min, max }: { readonly min: number; readonly max: number }): string {
  return min === max ? "" : `${pretty(min)} - ${pretty(max)}`;
}

/** A count stays whole: "0.00 out of order" would be confusing. */
export function factText(n: number): string {
  return Number.isInteger(n) ? n.toLocaleString("en") : pretty(n);
}

/** "meanTaskMs" -> "mean task ms" for a fact without a name. */
export function factName(name: string): string {
  return FACT_NAMES[name] ?? name.replaceAll(/([A-Z]|\d+)/g, " $1").toLowerCase();
}

const FACT_NAMES: Readonly<Record<string, string>> = {
  nodeCpuMsPer1000: "Node CPU, ms per 1,000",
  databaseCpuMsPer1000: "database CPU, ms per 1,000",
  cpuUsPerTask: "CPU per task, us",
  shareMinPercent: "smallest share, %",
  shareMaxPercent: "largest share, %",
  walBytesPerTask: "WAL bytes per task",
  rssMb: "peak RSS, MB",
  p50Ms: "p50, ms",
  p95Ms: "p95, ms",
  p99Ms: "p99, ms",
  peak: "peak concurrency",
  peakPerKey: "peak concurrency per key",
  inversions: "out of order",
  overlaps: "overlaps within a key",
};
