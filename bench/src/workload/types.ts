import type { Recipe } from "../databases.js";
import { drainSluice } from "../drained.js";
import { fillTask, withSluice } from "../fill.js";
import { SLUICE_CONFIG } from "../subjects.js";
import { kits } from "../tasks.js";
import type { Subject, Workload } from "../workload.js";

const NONE_LIMITED = "none limited";
// Tasks of one type that stand together in the backlog.
const RUN_LENGTH = 50;

/** What one limited type costs the 99 others. They are compared to a drain of the same 100 types. */
export const types: Workload = {
  name: "types",
  about: "100 types of no-ops, one of them limited to 10: the rate of the other 99",
  unit: "tasks/s",
  base: { subject: NONE_LIMITED },
  subjects: [subject(NONE_LIMITED, "types"), subject("1 of 100 limited", "typesOneLimited")],
};

function subject(name: string, kit: "types" | "typesOneLimited"): Subject {
  return {
    name,
    config: `${SLUICE_CONFIG}; until the last task of the other 99 types has returned`,
    measure(bench) {
      const total = bench.sizes.drain;
      const counted = (total / 100) * 99;
      return drainSluice(bench, {
        recipe: mixed(kit, total),
        kit,
        total: counted,
        untilRecorded: false,
      });
    },
  };
}

function mixed(kit: "types" | "typesOneLimited", count: number): Recipe {
  return {
    name: `${kit} ${count}`,
    fill: (url) =>
      withSluice(url, async (sluice) => {
        const contracts = kits[kit]().map((piece) => piece.contract);
        for (let made = 0; made < count; made += contracts.length * RUN_LENGTH) {
          for (const contract of contracts) await fillTask(sluice, contract, RUN_LENGTH);
        }
      }),
  };
}
