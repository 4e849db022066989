import { backlog } from "../backlog.js";
import { drainSluice } from "../drained.js";
import { SLUICE_CONFIG } from "../subjects.js";
import type { Workload } from "../workload.js";

const PERMITS = 1_000;
const SLEEP_MS = 50;

/** How well the permits of one worker are used: five rounds of 50 ms if they are all used all the time. */
export const permits: Workload = {
  name: "permits",
  about: "5,000 tasks of 50 ms with 1,000 permits; ideal are 250 ms",
  unit: "ms",
  base: { ideal: 250 },
  subjects: [
    {
      name: "5,000 tasks of 50 ms",
      config: SLUICE_CONFIG,
      async measure(bench) {
        const total = bench.sizes.sleep50;
        const { value, ...rest } = await drainSluice(bench, {
          recipe: backlog("sleep50", total),
          kit: "sleep50",
          total,
          numbers: { maxConcurrentTasks: PERMITS },
        });
        return { ...rest, value: (total * 1_000) / value };
      },
    },
  ],
};

if (PERMITS * SLEEP_MS * 5 !== 250 * 1_000) throw new Error("the ideal does not fit the sizes");
