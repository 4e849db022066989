import { recipeOf, whoIs } from "../entrant.js";
import { Fleet } from "../fleet.js";
import { quantile, sharesOf } from "../numbers.js";
import { enqueueIn } from "../once.js";
import type { Facts, Sample } from "../result.js";
import type { Place } from "../stores.js";
import type { Bench, Entrant, Subject } from "../workload.js";
import { Meter } from "./meter.js";

/** Tasks that come at fixed times, so many at once. */
export interface Pace {
  readonly each: number;
  readonly everyMs: number;
  /** The first so many are not counted. */
  readonly warmUp: number;
  /** Worker processes; default: one. */
  readonly processes?: number;
  /** What the value is; default: the p50 of the latency. */
  readonly value?: "p50" | "smallest share";
}

const MB = 1024 * 1024;

/** The time from enqueue in one process to the begin of the handler in another: p50. */
export function pacedSubject(entrant: Entrant, pace: Pace): Subject {
  return {
    who: whoIs(entrant),
    cannot: entrant.variant.cannot({}),
    measure: (bench, tasks, deadlineMs) => measurePaced(bench, entrant, pace, tasks, deadlineMs),
  };
}

async function measurePaced(
  bench: Bench,
  entrant: Entrant,
  pace: Pace,
  tasks: number,
  deadlineMs: number,
): Promise<Sample> {
  const empty = recipeOf(entrant, { shape: {}, keys: null, tasks: 0 });
  const place = await bench.stores.place(entrant.library, empty);
  try {
    return await paced(bench, entrant, pace, place, tasks + pace.warmUp, deadlineMs);
  } finally {
    await place.drop();
  }
}

async function paced(
  bench: Bench,
  { library, variant }: Entrant,
  { each, everyMs, warmUp, processes = 1, value }: Pace,
  place: Place,
  total: number,
  deadlineMs: number,
): Promise<Sample> {
  const what = { url: place.url, library: library.name, variant: variant.name, shape: {} };
  const numbers = library.name === "sluice" ? bench.numbers : {};
  const fleet = await Fleet.launch(
    { ...what, permits: null, numbers, work: "latency", total, watch: false },
    processes,
    bench.profile,
  );
  try {
    fleet.go();
    const meter = await Meter.start(place);
    const job = { kind: "paced", count: total, each, everyMs } as const;
    const enqueued = await enqueueIn({ ...what, keys: null, install: false, job }, bench.profile);
    const { tasks, cut } = await fleet.ended(total, deadlineMs);
    const reports = await fleet.reports();
    const used = await meter.facts(tasks, sum(reports.map((r) => r.cpuMs)) + enqueued.cpuMs);
    const counted = reports.map((r) => r.latenciesMs.slice(Math.ceil(warmUp / processes)));
    const latenciesMs = counted.flat();
    if (latenciesMs.length === 0) throw new Error(`${tasks} tasks started in time`);
    const at = (q: number): number => quantile(latenciesMs, q);
    const rssMb = Math.max(...reports.map((r) => r.rssBytesMax)) / MB;
    const shares = sharesOf(reports.map((r) => r.latenciesMs.length));
    const shared: Facts = processes === 1 ? {} : { shareMinPercent: shares.min, shareMaxPercent: shares.max };
    // Who is behind when all is enqueued has no latency, only a backlog.
    const behind: Facts = cut ? { notBegun: total - tasks } : {};
    const facts = { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99), tasks, ...behind, rssMb };
    const chosen = value === "smallest share" ? shares.min : facts.p50Ms;
    return { value: chosen, facts: { ...facts, ...shared, ...used } };
  } finally {
    await fleet.kill();
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
