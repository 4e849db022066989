import type { Shape } from "../adapter.js";
import type { Cast } from "../cast.js";
import { TYPES_ROUND } from "../library/sluice/scene.js";
import { drainSubject, type Drain } from "../measure/drain.js";
import type { Base, Sizing, Subject, Workload } from "../workload.js";
import { keptOf } from "./kept.js";
import { compared, UNLIMITED, unlimited } from "./unlimited.js";

const NONE_LIMITED = "none limited";
const ONE_LIMITED = "1 of 100 limited";

/** The four of the checklist. Its 10,000 no-ops last a fifth of a second, so these are sized by seconds. */
export function mission(cast: Cast): Workload[] {
  return [
    workload(cast, "baseline", "no-ops without limits, 4 workers", 4, {}, { by: "seconds" }),
    workload(cast, "enabled", "no-ops, every one under a limit of 10, 4 workers", 4, { limit: 10 }, { by: "seconds" }),
    types(cast, "mixed", 4),
    workload(
      cast,
      "high",
      "100,000 no-ops under a limit of 500, 8 workers",
      8,
      { limit: 500 },
      { by: "count", tasks: 100_000, quick: 5_000 },
    ),
  ];
}

function workload(cast: Cast, name: string, about: string, processes: number, shape: Shape, sizing: Sizing): Workload {
  const entrants = [cast.sluice("history on"), ...cast.peers("tuned")];
  const subjects: Subject[] = entrants.map((e) => drainSubject(e, { shape, processes }));
  const isLimited = shape.limit !== undefined;
  const base: Base = isLimited ? { subject: UNLIMITED } : null;
  return {
    name,
    about,
    unit: "tasks/s",
    better: "more",
    sizing,
    base,
    kept: keptOf(shape),
    subjects: isLimited ? [unlimited(cast, { processes }), ...subjects] : subjects,
  };
}

/** What one limited type costs the 99 others. They are compared to a drain of the same 100 types. */
export function types(cast: Cast, name: string, processes: number): Workload {
  const drain = (scene: string): Drain => ({
    shape: { scene: { name: scene, beside: 0 } },
    processes,
    counted: (tasks) => (tasks / 100) * 99,
    untilRecorded: false,
  });
  const by = processes === 1 ? "one worker" : `${processes} workers`;
  return {
    name,
    about: `100 types of no-ops, one of them limited to 10, ${by}: the rate of the other 99`,
    unit: "tasks/s",
    better: "more",
    sizing: { by: "seconds", alike: true, multipleOf: TYPES_ROUND },
    base: { subject: NONE_LIMITED },
    subjects: [compared(cast, NONE_LIMITED, drain("types")), compared(cast, ONE_LIMITED, drain("types-one-limited"))],
  };
}
