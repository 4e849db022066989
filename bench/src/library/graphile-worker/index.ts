import type { Library, Shape } from "../../adapter.js";
import { versionOf } from "../version.js";
import { adapterOf } from "./adapter.js";
import { asIs, plain, tuned } from "./settings.js";

const NO_LIMIT = "it has no limit over all processes: a named queue runs only one job at a time";

const SPACED =
  "Where there is an order, each job has a run_at of its own: jobs of one addJobs share one, and " +
  "are then taken in any order";

export const graphileWorker: Library = {
  name: "graphile-worker",
  version: versionOf("graphile-worker"),
  store: "postgres",
  variants: [
    {
      name: "default",
      config: "the defaults: one job at a time in each process, no local queue",
      cannot,
      adapter: adapterOf(asIs),
      fills: "graphile-worker",
    },
    {
      name: "tuned",
      config:
        "24 jobs at once, 10 connections, a local queue of 5,000, completions batched without delay: " +
        "its docs' advice for many small jobs; addJobs with 1,000 each, as large as our chunks. " +
        `${SPACED}; and it polls every ms, because a local queue that gets one job of each of few keys takes ` +
        "the backlog for empty until the next poll",
      cannot,
      adapter: adapterOf(tuned),
      fills: "graphile-worker, spaced",
    },
    {
      name: "plain",
      config:
        "24 jobs at once, 10 connections, no local queue and no batches, which trade latency for " +
        `throughput. ${SPACED}`,
      cannot,
      adapter: adapterOf(plain),
      fills: "graphile-worker, spaced",
    },
  ],
};

function cannot({ limit, limitPerKey }: Shape): string | null {
  return limit === undefined && limitPerKey === undefined ? null : NO_LIMIT;
}
