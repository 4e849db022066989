import { median } from "./numbers.js";
import type { Ratios, Sample, Who } from "./result.js";
import type { Base, Workload } from "./workload.js";

/** The samples of one subject, in the order of the repetitions. */
export interface Row {
  readonly who: Who;
  readonly samples: readonly Sample[];
}

type Rules = Pick<Workload, "better" | "base" | "kept">;

const OURS = ["sluice", "pure-sql"];

/** What a subject's values are against each base that the workload has. */
export function ratiosOf(own: Row, all: readonly Row[], rules: Rules): Ratios {
  const others = all.filter((row) => row.samples.length > 0 && keeps(row, rules));
  const peers = others.filter(({ who }) => !OURS.includes(who.library));
  const to = (rows: readonly Row[]): number | undefined => ratioTo(own, rows, rules.better);
  const found = {
    bestPeer: to(peers),
    bestPostgresPeer: to(peers.filter(({ who }) => who.store === "postgres")),
    bullmqRedis: to(peers.filter(({ who }) => who.library === "bullmq-redis")),
    pureSql: to(others.filter(({ who }) => who.library === "pure-sql")),
    base: baseRatio(own, all, rules.base),
    baseCpu: baseRatio(cpuOf(own), all.map(cpuOf), subjectOf(rules.base)),
  };
  return Object.fromEntries(Object.entries(found).filter(([, ratio]) => ratio !== undefined));
}

/** Who breaks what it was asked for has not done the work, and is nobody's measure. */
function keeps({ samples }: Row, { kept }: Rules): boolean {
  return kept === undefined || samples.every(({ facts }) => kept(facts));
}

/** The median of the ratios within each repetition: what drifts between repetitions cancels out. */
function ratioTo(own: Row, rows: readonly Row[], better: "more" | "less"): number | undefined {
  if (rows.length === 0) return undefined;
  const best = better === "more" ? Math.max : Math.min;
  return medianOf(own, (rep) => best(...rows.map(({ samples }) => samples[rep]?.value ?? NaN)));
}

function baseRatio(own: Row, all: readonly Row[], base: Base): number | undefined {
  if (base === null) return undefined;
  if ("ideal" in base) return medianOf(own, () => base.ideal);
  const row = all.find(({ who }) => who.name === base.subject);
  return row === undefined ? undefined : medianOf(own, (rep) => row.samples[rep]?.value ?? NaN);
}

/** The same samples with the CPU per task as their value. */
function cpuOf({ who, samples }: Row): Row {
  const cpuOfSample = ({ facts }: Sample): Sample => ({
    value: facts["cpuUsPerTask"] ?? Number.NaN,
    facts,
  });
  return { who, samples: samples.map(cpuOfSample) };
}

/** Theory has no CPU. */
function subjectOf(base: Base): Base {
  return base !== null && "subject" in base ? base : null;
}

function medianOf({ samples }: Row, baseAt: (rep: number) => number): number | undefined {
  const ratios = samples.map(({ value }, rep) => value / baseAt(rep)).filter((ratio) => Number.isFinite(ratio));
  return ratios.length === 0 ? undefined : median(ratios);
}
