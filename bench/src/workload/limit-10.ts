import { backlog } from "../backlog.js";
import { drainSluice } from "../drained.js";
import { SLUICE_CONFIG } from "../subjects.js";
import type { Workload } from "../workload.js";

/** A narrow limit that is the bottleneck: how quickly a freed slot is used again. */
export const limit10: Workload = {
  name: "limit-10",
  about: "tasks of 5 ms under a limit of 10; ideal are 2,000/s",
  unit: "tasks/s",
  base: { ideal: 2_000 },
  subjects: [
    {
      name: "limit 10, tasks of 5 ms",
      config: `${SLUICE_CONFIG}; a task is a timer of 5 ms, which Node makes a little longer`,
      measure(bench) {
        const total = bench.sizes.limit10;
        return drainSluice(bench, { recipe: backlog("limit10", total), kit: "limit10", total });
      },
    },
  ],
};
