import type { Workload } from "../workload.js";
import { blocked } from "./blocked.js";
import { drains } from "./drain.js";
import { enqueue } from "./enqueue.js";
import { inFlight } from "./in-flight.js";
import { latency } from "./latency.js";
import { limit10 } from "./limit-10.js";
import { limit500 } from "./limit-500.js";
import { neverBinds } from "./never-binds.js";
import { order } from "./order.js";
import { permits } from "./permits.js";
import { types } from "./types.js";
import { unserved } from "./unserved.js";

/** Every workload, in the order in which they are measured. */
export const workloads: readonly Workload[] = [
  enqueue,
  ...drains,
  neverBinds,
  limit500,
  limit10,
  types,
  order,
  blocked,
  unserved,
  latency,
  permits,
  inFlight,
];
