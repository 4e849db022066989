import type { Cast } from "../cast.js";
import type { Workload } from "../workload.js";
import { deep } from "./deep.js";
import { drains, presets } from "./drain.js";
import { enqueues } from "./enqueue.js";
import { awaited, limits, neverBinds, totals } from "./limits.js";
import { metrics } from "./metrics.js";
import { mission, types } from "./mission.js";
import { orders } from "./order.js";
import { latency, shares, sustained } from "./paced.js";
import { inFlight, permits } from "./permits.js";

/** Every workload, in the order in which they are measured. */
export function workloadsOf(cast: Cast, quick: boolean): Workload[] {
  return [
    ...enqueues(cast),
    ...drains(cast),
    presets(cast),
    ...sustained(cast),
    latency(cast),
    shares(cast),
    permits(cast),
    inFlight(cast),
    metrics(cast),
    ...orders(cast),
    ...neverBinds(cast),
    ...limits(cast),
    awaited(cast),
    totals(cast),
    types(cast, "types", 1),
    ...deep(cast, quick),
    ...mission(cast),
  ];
}
