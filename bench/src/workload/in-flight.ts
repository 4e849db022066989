import { setTimeout as sleep } from "node:timers/promises";
import { backlog } from "../backlog.js";
import { Fleet } from "../fleet.js";
import type { SluiceSpec } from "../process/work-sluice.js";
import { numbersOf } from "../subjects.js";
import type { Bench, Sample, Workload } from "../workload.js";

// Long enough for a heartbeat or two and for the sweeps over everything that runs.
const WATCH_MS = 3_000;
const MB = 1024 * 1024;

/** The memory of a process that holds 10,000 tasks at once. */
export const inFlight: Workload = {
  name: "in-flight",
  about: "10,000 tasks in flight on one worker: the largest RSS of the process",
  unit: "MB",
  base: null,
  subjects: [
    {
      name: "10,000 tasks in flight",
      config: "10,000 permits, claims of 500; every handler waits on a timer of its own",
      measure,
    },
  ],
};

async function measure(bench: Bench): Promise<Sample> {
  const total = bench.sizes.inFlight;
  const copy = await bench.databases.copyOf(backlog("hang", total));
  const spec: SluiceSpec = {
    url: copy.url,
    kit: "hang",
    total,
    keepHistory: true,
    numbers: numbersOf(bench, { maxConcurrentTasks: total, claimBatchSize: 500 }),
  };
  const fleet = await Fleet.launch("work-sluice", [spec], bench.profile);
  try {
    fleet.go();
    await fleet.begun(total);
    await sleep(WATCH_MS);
    const [report] = await fleet.reports();
    return {
      value: report!.rssBytesMax / MB,
      facts: { rssAtTheEndMb: report!.rssBytes / MB },
    };
  } finally {
    await fleet.stop();
    await copy.drop();
  }
}
