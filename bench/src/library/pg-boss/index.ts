import type { Library, Shape } from "../../adapter.js";
import { versionOf } from "../version.js";
import { adapterOf } from "./adapter.js";
import { asIs, polling, tuned } from "./settings.js";

const TWO_LIMITS = "a job has one group, so either all jobs or those of each key share a limit";

export const pgBoss: Library = {
  name: "pg-boss",
  version: versionOf("pg-boss"),
  store: "postgres",
  variants: [
    {
      name: "default",
      config:
        "work() and insert() as its README shows them: one job every 2 s, random ids; " +
        "permits set localConcurrency",
      cannot,
      adapter: adapterOf(asIs),
    },
    {
      name: "tuned",
      config:
        "LISTEN/NOTIFY; four workers with batches of 500 (two where notifications wake them), each woken by " +
        "notifyWorker() after a batch instead of waiting for the next poll; insert() with 1,000 each and " +
        "time-ordered ids, since index pages stay together and key_strict_fifo breaks ties by id. One " +
        "worker under an order or a limit for each key, and never more at once than a limit allows, " +
        "because groupConcurrency counts without a lock",
      cannot,
      adapter: adapterOf(tuned),
    },
    {
      name: "polling",
      config: "tuned, without LISTEN/NOTIFY: single enqueues that notify commit one after the other",
      cannot,
      adapter: adapterOf(polling),
    },
  ],
};

function cannot({ limit, limitPerKey }: Shape): string | null {
  return limit !== undefined && limitPerKey !== undefined ? TWO_LIMITS : null;
}
