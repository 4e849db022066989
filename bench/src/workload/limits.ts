import type { Shape } from "../adapter.js";
import type { Cast } from "../cast.js";
import type { Keys } from "../inputs.js";
import { drainSubject, type Drain } from "../measure/drain.js";
import type { Base, Sizing, Workload } from "../workload.js";
import { keptOf } from "./kept.js";
import { compared, UNLIMITED, unlimited } from "./unlimited.js";

/** A limit in words and numbers. */
interface Case {
  readonly name: string;
  readonly about: string;
  readonly shape: Shape;
  readonly keys?: Keys;
}

const SLEEP_MS = 5;
// More slots than permits in any of these processes: it is counted, and never full.
const NEVER_BINDS = 1_000_000;
const HUNDRED: Keys = { count: 100, arrangement: "interleaved" };

const cases: readonly Case[] = [
  { name: "limit-500", about: "a limit of 500", shape: { limit: 500 } },
  { name: "limit-10", about: "a limit of 10", shape: { limit: 10 } },
  {
    name: "keys-2",
    about: "a limit of 2 for each of 2,000 keys",
    shape: { limitPerKey: 2 },
    keys: { count: 2_000, arrangement: "interleaved" },
  },
  {
    name: "order-limit",
    about: "100 order keys and a limit of 10",
    shape: { ordered: true, limit: 10 },
    keys: HUNDRED,
  },
];

/** Limits that bind, with no-ops and with tasks of 5 ms. */
export function limits(cast: Cast): Workload[] {
  return cases.flatMap((one) => [noops(cast, one), sleepers(cast, one)]);
}

function noops(cast: Cast, { name, about, shape, keys }: Case): Workload {
  const narrow = name === "limit-10";
  const ours = [cast.sluice("history on"), ...(narrow ? [cast.sluice("default")] : [])];
  const peers = cast.peers(narrow ? "all" : "tuned");
  const drain = drainOf(shape, keys);
  return {
    // The plain name belongs to the older one, with tasks of 5 ms.
    name: narrow ? "limit-10-noop" : name,
    about: `no-ops under ${about}`,
    unit: "tasks/s",
    better: "more",
    sizing: sizingOf(keys),
    base: { subject: UNLIMITED },
    kept: keptOf(shape),
    subjects: [
      unlimited(cast),
      ...[...ours, ...cast.pureSql("one"), ...peers].map((e) => drainSubject(e, drain)),
    ],
  };
}

function sleepers(cast: Cast, { name, about, shape, keys }: Case): Workload {
  const drain = { ...drainOf(shape, keys), work: { sleepMs: SLEEP_MS } };
  return {
    name: name === "limit-10" ? name : `${name}-5ms`,
    about: `tasks of ${SLEEP_MS} ms under ${about}`,
    unit: "tasks/s",
    better: "more",
    sizing: sizingOf(keys),
    base: idealOf(shape),
    kept: keptOf(shape),
    subjects: [cast.sluice("history on"), ...cast.peers("tuned")].map((e) =>
      drainSubject(e, drain),
    ),
  };
}

function drainOf(shape: Shape, keys: Keys | undefined): Drain {
  return { shape, ...(keys === undefined ? {} : { keys }) };
}

/** At least so many of each key that its limit binds. */
function sizingOf(keys: Keys | undefined): Sizing {
  return { by: "seconds", min: Math.max(500, 4 * (keys?.count ?? 0)) };
}

/** Only where the slots are what one waits for, and not the processor. */
function idealOf({ limit }: Shape): Base {
  if (limit === undefined || limit > 50) return null;
  return { ideal: (limit * 1_000) / SLEEP_MS, words: "the ideal" };
}

/** What a limit costs that is never full: Sluice against itself. */
export function neverBinds(cast: Cast): Workload[] {
  return [null, SLEEP_MS].map((sleepMs) => {
    const work = sleepMs === null ? {} : { work: { sleepMs } };
    return {
      name: sleepMs === null ? "never-binds" : "never-binds-5ms",
      about: `${sleepMs === null ? "no-ops" : `tasks of ${sleepMs} ms`} under a limit of a million, which never binds`,
      unit: "tasks/s",
      better: "more",
      sizing: { by: "seconds", alike: true },
      base: { subject: UNLIMITED },
      subjects: [
        // Its times are noted as well, so that both sides do the same.
        unlimited(cast, { ...work, watch: true }),
        compared(cast, "a named limit", { shape: { limit: NEVER_BINDS }, ...work }),
        compared(cast, "the type's own concurrency", {
          shape: { scene: { name: "own-limit", beside: 0 } },
          ...work,
          watch: true,
        }),
      ],
    };
  });
}
