import { recipeOf, whoIs } from "../entrant.js";
import { enqueueIn } from "../once.js";
import type { EnqueueJob } from "../process/messages.js";
import type { Sample } from "../result.js";
import type { Bench, Entrant, Subject } from "../workload.js";
import { Meter } from "./meter.js";

/** How tasks are enqueued: as lists, by single calls, or by clients with a transaction for each. */
export type Enqueuing =
  | { readonly kind: "bulk"; readonly inFlight: number }
  | { readonly kind: "singles"; readonly inFlight: number }
  | { readonly kind: "clients"; readonly clients: number };

const MB = 1024 * 1024;

export function enqueueSubject(entrant: Entrant, enqueuing: Enqueuing): Subject {
  return {
    who: whoIs(entrant),
    // Whether it has an enqueue within a transaction shows when it is asked for.
    cannot: entrant.variant.cannot({}),
    measure: (bench, tasks, deadlineMs) => measureEnqueue(bench, entrant, jobOf(enqueuing, tasks, deadlineMs)),
  };
}

function jobOf(enqueuing: Enqueuing, count: number, deadlineMs: number): EnqueueJob {
  return enqueuing.kind === "bulk" ? { ...enqueuing, count } : { ...enqueuing, count, deadlineMs };
}

async function measureEnqueue(bench: Bench, entrant: Entrant, job: EnqueueJob): Promise<Sample> {
  const { library, variant } = entrant;
  const empty = recipeOf(entrant, { shape: {}, keys: null, tasks: 0 });
  const place = await bench.stores.place(library, empty);
  try {
    const meter = await Meter.start(place);
    const what = { library: library.name, variant: variant.name, shape: {}, keys: null };
    const { tasks, warmUp, ms, cpuMs, rssBytesMax } = await enqueueIn(
      { url: place.url, ...what, install: false, job },
      bench.profile,
    );
    const used = await meter.facts(tasks, cpuMs, tasks + warmUp);
    const basics = { tasks, seconds: ms / 1_000, rssMb: rssBytesMax / MB };
    return { value: (tasks * 1_000) / ms, facts: { ...basics, ...used } };
  } finally {
    await place.drop();
  }
}
