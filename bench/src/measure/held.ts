import { setTimeout as sleep } from "node:timers/promises";
import { recipeOf, whoIs } from "../entrant.js";
import { Fleet } from "../fleet.js";
import type { Sample } from "../result.js";
import type { Bench, Entrant, Subject } from "../workload.js";

// Long enough for a heartbeat or two and for the sweeps over everything that runs.
const WATCH_MS = 3_000;
const HANG_MS = 600_000;
// Ours claims no more when fewer than a tenth of its permits are free; a few more do nobody any harm.
const PERMITS_PER_TASK = 1.25;
const MB = 1024 * 1024;

/** The memory of a process that holds all its tasks at once: every handler waits on a timer of its own. */
export function heldSubject(entrant: Entrant): Subject {
  return {
    who: whoIs(entrant),
    cannot: entrant.variant.cannot({}),
    measure: (bench, tasks, deadlineMs) => measureHeld(bench, entrant, tasks, deadlineMs),
  };
}

async function measureHeld(bench: Bench, entrant: Entrant, tasks: number, deadlineMs: number): Promise<Sample> {
  const { library, variant } = entrant;
  const recipe = recipeOf(entrant, { shape: {}, keys: null, tasks });
  const place = await bench.stores.place(library, recipe);
  try {
    const what = { url: place.url, library: library.name, variant: variant.name, shape: {} };
    const work = { sleepMs: HANG_MS };
    const numbers = library.name === "sluice" ? bench.numbers : {};
    const permits = Math.ceil(tasks * PERMITS_PER_TASK);
    const spec = { ...what, permits, numbers, work, total: tasks, watch: false };
    const fleet = await Fleet.launch(spec, 1, bench.profile);
    try {
      fleet.go();
      const begun = await fleet.begun(tasks, deadlineMs);
      if (begun < tasks) throw new Error(`${begun} of ${tasks} tasks ran at once`);
      await sleep(WATCH_MS);
      const [report] = await fleet.reports();
      const rssAtTheEndMb = report!.rssBytes / MB;
      return { value: report!.rssBytesMax / MB, facts: { tasks, rssAtTheEndMb } };
    } finally {
      await fleet.kill();
    }
  } finally {
    await place.drop();
  }
}
