import type { Recipe } from "../databases.js";
import { drainOf, UNLIMITED, unlimited } from "../beside.js";
import { withSluice } from "../fill.js";
import { inputs, kits } from "../tasks.js";
import type { Workload } from "../workload.js";

const KEYS = 100;

/** Strict order: at most one task of each of 100 keys at a time. */
export const order: Workload = {
  name: "order",
  about: "no-ops under 100 order keys",
  unit: "tasks/s",
  base: { subject: UNLIMITED },
  subjects: [
    unlimited,
    drainOf("100 order keys", "order", ({ sizes }) => ({ recipe: ordered(sizes.drain) })),
  ],
};

function ordered(count: number): Recipe {
  return {
    name: `order ${count}`,
    fill: (url) =>
      withSluice(url, async (sluice) => {
        await sluice.enqueueMany(kits.order()[0]!.contract, inputs(count, KEYS));
      }),
  };
}
