import { drainOf, UNLIMITED, unlimited } from "../beside.js";
import type { Workload } from "../workload.js";

/** What a limit costs that is never full. */
export const neverBinds: Workload = {
  name: "never-binds",
  about: "no-ops under a limit of a million, which never binds",
  unit: "tasks/s",
  base: { subject: UNLIMITED },
  subjects: [
    unlimited,
    drainOf("a named limit", "neverBinds"),
    drainOf("the type's own concurrency", "ownNeverBinds"),
  ],
};
