import type { Recipe } from "../databases.js";
import { drainOf, UNLIMITED, unlimited } from "../beside.js";
import { fillTask, withSluice } from "../fill.js";
import { kits, nobodys } from "../tasks.js";
import type { Sizes } from "../sizes.js";
import type { Workload } from "../workload.js";

/** A rolling deploy: half a million ready tasks, older than ours, that this worker has no handler for. */
export const unserved: Workload = {
  name: "unserved",
  about: "no-ops beside half a million ready tasks of a type that nobody serves",
  unit: "tasks/s",
  base: { subject: UNLIMITED },
  subjects: [
    unlimited,
    drainOf("half a million unserved beside it", "unserved", ({ sizes }) => ({
      recipe: beside(sizes),
    })),
  ],
};

function beside(sizes: Sizes): Recipe {
  return {
    name: `unserved ${sizes.unserved}`,
    fill: (url) =>
      withSluice(url, async (sluice) => {
        await fillTask(sluice, nobodys, sizes.unserved);
        await fillTask(sluice, kits.unserved()[0]!.contract, sizes.drain);
      }),
  };
}
