import type { Recipe } from "../databases.js";
import { drainOf, UNLIMITED, unlimited } from "../beside.js";
import { fillTask, withSluice } from "../fill.js";
import { kits } from "../tasks.js";
import type { Sizes } from "../sizes.js";
import type { Workload } from "../workload.js";

/** Tasks that cannot run must not slow down those that can, although this worker serves both. */
export const blocked: Workload = {
  name: "blocked",
  about: "no-ops beside a million tasks of a limit of 1, whose slot a hanging task holds",
  unit: "tasks/s",
  base: { subject: UNLIMITED },
  subjects: [
    unlimited,
    drainOf("a million blocked beside it", "blocked", ({ sizes }) => ({
      recipe: beside(sizes),
      hanging: 1,
    })),
  ],
};

function beside(sizes: Sizes): Recipe {
  return {
    name: `blocked ${sizes.blocked}`,
    fill: (url) =>
      withSluice(url, async (sluice) => {
        const [plain, stuck] = kits.blocked();
        await fillTask(sluice, stuck!.contract, sizes.blocked);
        await fillTask(sluice, plain!.contract, sizes.drain);
      }),
  };
}
