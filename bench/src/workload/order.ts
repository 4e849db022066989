import type { Cast } from "../cast.js";
import type { Keys } from "../inputs.js";
import { drainSubject } from "../measure/drain.js";
import type { Workload } from "../workload.js";
import { keptOf } from "./kept.js";
import { UNLIMITED, unlimited } from "./unlimited.js";

const shape = { ordered: true } as const;

/** Strict order: at most one task of each key at a time, in the order in which they were enqueued. */
export function orders(cast: Cast): Workload[] {
  return [
    workload(cast, "order", "100 interleaved order keys", {
      count: 100,
      arrangement: "interleaved",
    }),
    workload(cast, "order-contiguous", "100 order keys, with the tasks of each key contiguous", {
      count: 100,
      arrangement: "contiguous",
    }),
    workload(cast, "order-20k", "20,000 interleaved order keys", {
      count: 20_000,
      arrangement: "interleaved",
    }),
    workload(cast, "order-1", "one order key", { count: 1, arrangement: "interleaved" }),
  ];
}

function workload(cast: Cast, name: string, about: string, keys: Keys): Workload {
  const which = name === "order" ? "all" : "tuned";
  const ours = [cast.sluice("history on"), cast.sluice("history off")];
  const entrants = [...ours, ...cast.pureSql("one"), ...cast.peers(which)];
  return {
    name,
    about: `no-ops under ${about}`,
    unit: "tasks/s",
    better: "more",
    // At least two of each key: a single one has nothing to be in order with.
    sizing: { by: "seconds", min: Math.max(500, 2 * keys.count) },
    base: { subject: UNLIMITED },
    kept: keptOf(shape),
    subjects: [unlimited(cast), ...entrants.map((e) => drainSubject(e, { shape, keys }))],
  };
}
