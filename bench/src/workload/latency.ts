import { setTimeout as sleep } from "node:timers/promises";
import { makeWorkerUtils } from "graphile-worker";
import { Sluice } from "../../../src/index.js";
import { backlog, graphileBacklog } from "../backlog.js";
import { quiet } from "../fill.js";
import { Fleet } from "../fleet.js";
import { nowMs, quantile } from "../numbers.js";
import type { GraphileSpec } from "../process/work-graphile.js";
import type { SluiceSpec } from "../process/work-sluice.js";
import { GRAPHILE, GRAPHILE_CONFIG, numbersOf } from "../subjects.js";
import { kits, type Input } from "../tasks.js";
import type { Bench, Sample, Workload } from "../workload.js";

const APART_MS = 20;
const WARM_UP = 20;

/** From the call of enqueue in one process to the begin of the handler in another that has nothing to do. */
export const latency: Workload = {
  name: "latency",
  about: "tasks 20 ms apart, from enqueue to the begin of the handler in an idle worker: p50",
  unit: "ms",
  base: { lowestOf: ["graphile-worker, plain", "graphile-worker, tuned"] },
  subjects: [
    { name: "sluice", config: "1,000 permits, woken by NOTIFY: its defaults", measure: ours },
    {
      name: "graphile-worker, plain",
      config:
        "24 jobs at once, 10 connections, no local queue and no batches, which are for throughput",
      measure: (bench) => theirs(bench, { concurrentJobs: 24, maxPoolSize: 10 }),
    },
    {
      name: "graphile-worker, tuned",
      config: GRAPHILE_CONFIG,
      measure: (bench) => theirs(bench, GRAPHILE),
    },
  ],
};

async function ours(bench: Bench): Promise<Sample> {
  const copy = await bench.databases.copyOf(backlog("latency", 0));
  const { url } = copy;
  const total = totalOf(bench);
  const numbers = numbersOf(bench, { claimBatchSize: 50 });
  const spec: SluiceSpec = { url, kit: "latency", total, keepHistory: true, numbers };
  const fleet = await Fleet.launch("work-sluice", [spec], bench.profile);
  const sluice = await Sluice.connect({ url, migrate: false, listen: false });
  const { contract } = kits.latency()[0]!;
  try {
    return await timed(fleet, total, (input) => sluice.enqueue(contract, input));
  } finally {
    await sluice.close();
    await fleet.stop();
    await copy.drop();
  }
}

async function theirs(bench: Bench, preset: GraphileConfig.WorkerOptions): Promise<Sample> {
  const copy = await bench.databases.copyOf(graphileBacklog(0));
  const { url } = copy;
  const total = totalOf(bench);
  const spec: GraphileSpec = { url, total, preset, latency: true };
  const fleet = await Fleet.launch("work-graphile", [spec], bench.profile);
  const utils = await makeWorkerUtils({ connectionString: url, logger: quiet });
  try {
    return await timed(fleet, total, (input) => utils.addJob("plain", input));
  } finally {
    await utils.release();
    await fleet.stop();
    await copy.drop();
  }
}

function totalOf({ sizes }: Bench): number {
  return sizes.latency + WARM_UP;
}

async function timed(
  fleet: Fleet,
  total: number,
  enqueue: (input: Input) => Promise<unknown>,
): Promise<Sample> {
  fleet.go();
  for (let n = 0; n < total; n++) {
    await sleep(APART_MS);
    await enqueue({ n, atMs: nowMs() });
  }
  await fleet.ended(total);
  const [report] = await fleet.reports();
  const at = (q: number): number => quantile(report!.latenciesMs.slice(WARM_UP), q);
  return { value: at(0.5), facts: { p50Ms: at(0.5), p95Ms: at(0.95), p99Ms: at(0.99) } };
}
