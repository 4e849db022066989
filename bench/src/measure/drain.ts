import type { Shape } from "../adapter.js";
import { audit, type Ledger } from "../audit.js";
import { recipeOf, whoIs } from "../entrant.js";
import { Fleet, type Ended } from "../fleet.js";
import type { Keys } from "../inputs.js";
import { nowMs } from "../numbers.js";
import type { Report, Work, WorkSpec } from "../process/messages.js";
import type { Facts, Sample } from "../result.js";
import type { Place } from "../stores.js";
import type { Bench, Entrant, Subject } from "../workload.js";
import { Meter } from "./meter.js";

/** How a backlog is drained. */
export interface Drain {
  readonly shape: Shape;
  readonly keys?: Keys;
  /** What a handler does; default: nothing. */
  readonly work?: Work;
  readonly processes?: number;
  readonly permits?: number;
  /** How many of the tasks are counted and timed; default: all. */
  counted?(tasks: number): number;
  /** false: until the last counted handler has returned, where others go on for longer. */
  readonly untilRecorded?: boolean;
  /** Done beside the drain, from before its begin; what it returns ends it. */
  beside?(url: string): Promise<() => Promise<void>>;
  /** Whether times are noted although nothing is promised. */
  readonly watch?: boolean;
  /** What the value is; default: tasks per second. */
  readonly value?: "rate" | "ms";
}

const POLL_MS = 2;
const RECORDED_MS_MAX = 60_000;
const MB = 1024 * 1024;
const OURS = ["sluice", "pure-sql"];

/** A drain as a subject of a workload. */
export function drainSubject(entrant: Entrant, drain: Drain, name?: string): Subject {
  return {
    who: whoIs(entrant, name),
    cannot: entrant.variant.cannot(drain.shape),
    measure: (bench, tasks, deadlineMs) => measureDrain(bench, entrant, drain, tasks, deadlineMs),
  };
}

/** From the begin of the first handler to the last completion that is recorded. */
async function measureDrain(
  bench: Bench,
  entrant: Entrant,
  drain: Drain,
  tasks: number,
  deadlineMs: number,
): Promise<Sample> {
  const recipe = recipeOf(entrant, { shape: drain.shape, keys: drain.keys ?? null, tasks });
  const place = await bench.stores.place(entrant.library, recipe);
  try {
    const end = await drain.beside?.(place.url);
    try {
      const total = drain.counted?.(tasks) ?? tasks;
      return await drained(bench, entrant, drain, place, total, deadlineMs);
    } finally {
      await end?.();
    }
  } finally {
    await place.drop();
  }
}

async function drained(
  bench: Bench,
  entrant: Entrant,
  drain: Drain,
  place: Place,
  total: number,
  deadlineMs: number,
): Promise<Sample> {
  const spec = specOf(bench, entrant, drain, place.url, total);
  const fleet = await Fleet.launch(spec, drain.processes ?? 1, bench.profile);
  let whole = false;
  try {
    const meter = await Meter.start(place);
    fleet.go();
    const ended = await fleet.ended(total, deadlineMs);
    if (ended.tasks === 0) return { value: 0, facts: { tasks: 0 } };
    const untilMs = await recorded(entrant, drain, place, ended);
    const reports = await fleet.reports();
    const used = await meter.facts(ended.tasks, sum(reports.map((r) => r.cpuMs)));
    const twice = ended.cut ? {} : await verified(entrant, drain, place, fleet.started, total);
    whole = !ended.cut && drain.untilRecorded !== false;
    const ms = untilMs - fleet.firstMs();
    return {
      value: drain.value === "ms" ? ms : (ended.tasks * 1_000) / ms,
      facts: { ...basics(ended, ms), ...twice, ...seen(drain, reports, ms, ended), ...used },
    };
  } finally {
    await (whole ? fleet.stop() : fleet.kill());
  }
}

function specOf(
  bench: Bench,
  { library, variant }: Entrant,
  { shape, work, permits, watch }: Drain,
  url: string,
  total: number,
): WorkSpec {
  return {
    url,
    library: library.name,
    variant: variant.name,
    shape,
    permits: permits ?? null,
    numbers: library.name === "sluice" ? bench.numbers : {},
    work: work ?? "nothing",
    total,
    watch: watch ?? isWatched(shape),
  };
}

/** Only where something is promised: who notes the times of no-ops makes them slower. */
function isWatched({ ordered, limit, limitPerKey }: Shape): boolean {
  return ordered === true || limit !== undefined || limitPerKey !== undefined;
}

/**
 * Asks only once every handler has returned, so that asking does not slow down what is measured. The
 * moment is the one before the question that found nothing: who takes longer to answer does not pay.
 */
async function recorded(
  { variant }: Entrant,
  { shape, untilRecorded }: Drain,
  place: Place,
  ended: Ended,
): Promise<number> {
  if (ended.cut || untilRecorded === false) return ended.atMs;
  const giveUpMs = nowMs() + RECORDED_MS_MAX;
  for (;;) {
    const askedMs = nowMs();
    const left = await variant.adapter.unfinished(place.url, shape);
    if (left === 0) return askedMs;
    if (nowMs() > giveUpMs) throw new Error(`${left} tasks are not recorded as finished`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** Of ours each task runs once and is recorded, or the measurement is void; of a peer's it is told. */
async function verified(
  { library, variant }: Entrant,
  { shape, untilRecorded }: Drain,
  place: Place,
  started: number,
  total: number,
): Promise<Facts> {
  if (untilRecorded !== false) await variant.adapter.verify?.(place.url, shape, total);
  if (started === total) return {};
  if (OURS.includes(library.name)) throw new Error(`${started} starts of ${total} tasks`);
  return { startsTooMany: started - total };
}

function basics({ tasks, cut }: Ended, ms: number): Facts {
  return { tasks, seconds: ms / 1_000, ...(cut ? { cut: 1 } : {}) };
}

/** What the processes tell. */
function seen(drain: Drain, reports: readonly Report[], ms: number, { tasks }: Ended): Facts {
  const claims = sum(reports.map((report) => report.claims));
  const lengths = reports.map((report) => report.lengthMs).filter((length) => length > 0);
  const meanTaskMs = lengths.length === 0 ? 0 : sum(lengths) / lengths.length;
  const ledgers = reports.flatMap(({ ledger }) => (ledger === null ? [] : [ledger]));
  const { limit } = drain.shape;
  // How long a slot lies idle between two tasks: released by one, acquired by the next.
  const handOver = limit !== undefined && meanTaskMs > 0 && limit <= HAND_OVER_LIMIT_MAX;
  return {
    ...promised(drain.shape, ledgers),
    ...(meanTaskMs > 0 ? { meanTaskMs } : {}),
    ...(handOver ? { handOverMs: (limit * ms) / tasks - meanTaskMs } : {}),
    ...(claims > 0 ? { tasksPerClaim: tasks / claims } : {}),
    ...((drain.processes ?? 1) > 1 ? { perProcess: (tasks * 1_000) / ms / drain.processes! } : {}),
    rssMb: Math.max(...reports.map((report) => report.rssBytesMax)) / MB,
  };
}

/** What was asked for, as far as the handlers could see it. */
function promised({ ordered, limit, limitPerKey }: Shape, ledgers: readonly Ledger[]): Facts {
  if (ledgers.length === 0) return {};
  const { inversions, overlaps, peak, peakPerKey } = audit(ledgers);
  return {
    ...(ordered === true ? { inversions, overlaps } : {}),
    ...(limit === undefined ? {} : { peak }),
    ...(limitPerKey === undefined ? {} : { peakPerKey }),
  };
}

// With more slots than that it is not the slots that one waits for.
const HAND_OVER_LIMIT_MAX = 50;

function sum(values: readonly number[]): number {
  return values.reduce((a, b) => a + b, 0);
}
