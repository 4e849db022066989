import type { Entry } from "./interleave.js";
import { median } from "./numbers.js";
import { ratiosOf, type Row } from "./ratios.js";
import type { Facts, Result, Sample, Unit } from "./result.js";
import { pretty } from "./say.js";
import type { Base, Workload } from "./workload.js";

// Of these the worst counts: once is too often.
const WORST = ["inversions", "overlaps", "peak", "peakPerKey", "startsTooMany", "cut", "notBegun"];

/** What is read from the samples of a workload. */
interface View extends Pick<Workload, "better" | "base" | "kept"> {
  readonly workload: string;
  readonly about: string;
  readonly unit: Unit;
}

/** Medians and ratios of everyone, and once more for each further reading. */
export function resultsOf(workload: Workload, entries: readonly Entry[]): Result[] {
  const main: View = { ...workload, workload: workload.name };
  const views = (workload.readings ?? []).map((reading) => ({
    view: { ...main, ...reading },
    fact: reading.fact,
  }));
  return [
    ...viewed(main, entries, (sample) => sample.value),
    ...views.flatMap(({ view, fact }) => viewed(view, entries, (sample) => sample.facts[fact] ?? Number.NaN)),
  ];
}

function viewed(view: View, entries: readonly Entry[], valueOf: (sample: Sample) => number): Result[] {
  const rows = entries.map((entry) => rowOf(entry, valueOf));
  return entries.map((entry, i) => resultOf(view, entry, rows[i]!, rows));
}

function rowOf({ subject, samples, cannot }: Entry, valueOf: (sample: Sample) => number): Row {
  const valid = cannot === null ? samples : [];
  return { who: subject.who, samples: valid.map((s) => ({ ...s, value: valueOf(s) })) };
}

function resultOf(view: View, { cannot }: Entry, row: Row, rows: readonly Row[]): Result {
  const { workload, about, unit, better } = view;
  const values = row.samples.map((s) => s.value);
  const none = values.length === 0;
  return {
    workload,
    about,
    subject: row.who,
    unit,
    better,
    value: none ? null : median(values),
    min: none ? null : Math.min(...values),
    max: none ? null : Math.max(...values),
    ratios: none ? {} : ratiosOf(row, rows, view),
    base: baseWords(view.base, unit),
    facts: summary(row.samples),
    ...(cannot === null ? {} : { cannot }),
    samples: row.samples,
  };
}

function baseWords(base: Base, unit: Unit): string | null {
  if (base === null) return null;
  return "subject" in base ? base.subject : `${base.words} (${pretty(base.ideal)} ${unit})`;
}

function summary(samples: readonly Sample[]): Facts {
  const names = new Set(samples.flatMap(({ facts }) => Object.keys(facts)));
  return Object.fromEntries(
    [...names].map((name) => {
      const values = samples.flatMap(({ facts }) => facts[name] ?? []);
      return [name, WORST.includes(name) ? Math.max(...values) : median(values)];
    }),
  );
}
