import type { Copy, Recipe } from "./databases.js";
import { Fleet } from "./fleet.js";
import { nowMs } from "./numbers.js";
import type { Report } from "./process/messages.js";
import type { GraphileSpec } from "./process/work-graphile.js";
import type { SluiceSpec } from "./process/work-sluice.js";
import { GRAPHILE, numbersOf } from "./subjects.js";
import type { KitName } from "./tasks.js";
import type { Bench, Sample } from "./workload.js";

/** How a backlog of ours is drained. */
export interface Drain {
  readonly recipe: Recipe;
  readonly kit: KitName;
  /** Counted tasks. */
  readonly total: number;
  readonly processes?: number;
  readonly keepHistory?: boolean;
  readonly numbers?: Bench["worker"];
  /** Tasks that hang for ever beside the counted ones. */
  readonly hanging?: number;
  /** false: until the last counted handler has returned, where others go on for longer. */
  readonly untilRecorded?: boolean;
}

const POLL_MS = 2;
// Not through a public door: counting cheaply what is not yet recorded needs a look at the one table
// that holds it, for both sides.
const RUNNING = "select count(*)::int as n from sluice.run";
const JOBS = "select count(*)::int as n from (select from graphile_worker._private_jobs limit 1) x";

const SUCCEEDED = "select count(distinct id)::int as n from sluice.done where state = 's'";

/** From the begin of the first handler to the last completion that is recorded in the database. */
export async function drainSluice(bench: Bench, drain: Drain): Promise<Sample> {
  const copy = await bench.databases.copyOf(drain.recipe);
  const spec: SluiceSpec = {
    url: copy.url,
    kit: drain.kit,
    total: drain.total,
    keepHistory: drain.keepHistory ?? true,
    numbers: numbersOf(bench, drain.numbers),
  };
  const specs = Array.from({ length: drain.processes ?? 1 }, () => spec);
  const fleet = await Fleet.launch("work-sluice", specs, bench.profile);
  try {
    fleet.go();
    const endedMs = await fleet.ended(drain.total);
    const untilMs =
      drain.untilRecorded === false ? endedMs : await recorded(copy, RUNNING, drain.hanging ?? 0);
    if (spec.keepHistory && drain.untilRecorded !== false) await verify(copy, drain.total);
    const reports = await fleet.reports();
    return { value: rate(drain.total, untilMs - fleet.firstMs()), facts: factsOf(drain, reports) };
  } finally {
    await fleet.stop();
    await copy.drop();
  }
}

function factsOf({ total }: Drain, reports: readonly Report[]): Record<string, number> {
  const claims = reports.reduce((sum, report) => sum + report.claims, 0);
  const meanTaskMs = reports[0]!.lengthMs;
  return { tasksPerClaim: total / claims, ...(meanTaskMs > 0 ? { meanTaskMs } : {}) };
}

/** The same for graphile-worker. */
export async function drainGraphile(
  bench: Bench,
  drain: Pick<Drain, "recipe" | "total" | "processes">,
): Promise<Sample> {
  const copy = await bench.databases.copyOf(drain.recipe);
  const spec: GraphileSpec = {
    url: copy.url,
    total: drain.total,
    preset: GRAPHILE,
    latency: false,
  };
  const specs = Array.from({ length: drain.processes ?? 1 }, () => spec);
  const fleet = await Fleet.launch("work-graphile", specs, bench.profile);
  try {
    fleet.go();
    await fleet.ended(drain.total);
    const untilMs = await recorded(copy, JOBS, 0);
    return { value: rate(drain.total, untilMs - fleet.firstMs()) };
  } finally {
    await fleet.stop();
    await copy.drop();
  }
}

/** Asks only once every handler has returned, so that asking does not slow down what is measured. */
async function recorded(copy: Copy, query: string, hanging: number): Promise<number> {
  for (;;) {
    const [row] = await copy.query(query);
    if ((row!["n"] as number) <= hanging) return nowMs();
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}

/** A fast worker that loses or doubles tasks is not fast. */
async function verify(copy: Copy, total: number): Promise<void> {
  const [row] = await copy.query(SUCCEEDED);
  if (row!["n"] !== total) throw new Error(`${String(row!["n"])} of ${total} tasks succeeded`);
}

function rate(tasks: number, ms: number): number {
  return (tasks * 1_000) / ms;
}
