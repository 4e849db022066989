import type { Library } from "../../adapter.js";
import { versionOf } from "../version.js";
import { adapterOf } from "./adapter.js";
import { asIs, tuned } from "./settings.js";

export const dbos: Library = {
  name: "dbos",
  version: versionOf("@dbos-inc/dbos-sdk"),
  store: "postgres",
  variants: [
    {
      name: "default",
      config:
        "a queue as its README registers it, polled every second; its client, ten calls in flight, " +
        "one under an order",
      cannot: () => null,
      adapter: adapterOf(asIs),
    },
    {
      name: "tuned",
      config:
        "500 at once, polled every 5 ms, or every 1 ms where tasks wait for the next poll; its " +
        "documented SQL function dbos.enqueue_workflow, 1,000 calls in one statement, with time-ordered " +
        "ids because a partition breaks ties by id; order and limit for each key by partition, a limit by " +
        "globalConcurrency. Its pool of 10 connections: more were no faster",
      cannot: () => null,
      adapter: adapterOf(tuned),
    },
  ],
};
