import { drainOf, UNLIMITED, unlimited } from "../beside.js";
import type { Workload } from "../workload.js";

/** A wide limit that binds: fewer slots than permits. */
export const limit500: Workload = {
  name: "limit-500",
  about: "no-ops under a limit of 500, beside 1,000 permits",
  unit: "tasks/s",
  base: { subject: UNLIMITED },
  subjects: [unlimited, drainOf("limit 500", "limit500")],
};
