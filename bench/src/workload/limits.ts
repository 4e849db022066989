import type { Shape } from "../adapter.js";
import type { Cast } from "../cast.js";
import type { Keys } from "../inputs.js";
import { TOTAL } from "../library/sluice/scene.js";
import { awaitAll } from "../measure/awaited.js";
import { drainSubject, type Drain } from "../measure/drain.js";
import type { Base, Sizing, Subject, Workload } from "../workload.js";
import { keptOf } from "./kept.js";
import { UNLIMITED, unlimited } from "./unlimited.js";

/** A limit in words and numbers. */
interface Case {
  readonly name: string;
  readonly about: string;
  readonly shape: Shape;
  readonly keys?: Keys;
}

const SLEEP_MS = 5;
const TOTAL_SLEEP_MS = 20;
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
    subjects: [unlimited(cast), ...[...ours, ...cast.pureSql("one"), ...peers].map((e) => drainSubject(e, drain))],
  };
}

function sleepers(cast: Cast, { name, about, shape, keys }: Case): Workload {
  const drain = { ...drainOf(shape, keys), work: { sleepMs: SLEEP_MS } };
  const ours = [cast.sluice("history on"), ...(name === "limit-10" ? [cast.sluice("default")] : [])];
  return {
    name: name === "limit-10" ? name : `${name}-5ms`,
    about: `tasks of ${SLEEP_MS} ms under ${about}`,
    unit: "tasks/s",
    better: "more",
    sizing: sizingOf(keys),
    base: idealOf(shape),
    kept: keptOf(shape),
    subjects: [...ours, ...cast.peers("tuned")].map((e) => drainSubject(e, drain)),
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

/** How well four workers use the slots of one total, and of two that every task needs: nothing is set. */
export function totals(cast: Cast): Workload {
  const ours = cast.sluice("default");
  const drain = { work: { sleepMs: TOTAL_SLEEP_MS }, processes: 4 };
  const two = { scene: { name: "two-totals", beside: 0 } };
  return {
    name: `total-${TOTAL}`,
    about: `tasks of ${TOTAL_SLEEP_MS} ms under a total of ${TOTAL}, 4 workers`,
    unit: "tasks/s",
    better: "more",
    sizing: { by: "seconds", alike: true },
    base: { ideal: (TOTAL * 1_000) / TOTAL_SLEEP_MS, words: "the ideal" },
    subjects: [
      drainSubject(ours, { shape: { limit: TOTAL }, ...drain }, "one total"),
      drainSubject(ours, { shape: two, ...drain }, "two totals"),
    ],
  };
}

/** A limit that binds while somebody waits for the result of every task. */
export function awaited(cast: Cast): Workload {
  const drain = { shape: { limit: 10 }, work: { sleepMs: SLEEP_MS } };
  return {
    name: "limit-10-awaited",
    about: `tasks of ${SLEEP_MS} ms under a limit of 10, and a process that awaits all results`,
    unit: "tasks/s",
    better: "more",
    sizing: { by: "seconds", alike: true },
    base: idealOf(drain.shape),
    subjects: [
      drainSubject(cast.sluice("default"), drain, "no result awaited"),
      drainSubject(cast.sluice("default"), { ...drain, beside: awaitAll }, "all results awaited"),
    ],
  };
}

/**
 * What a limit costs that is never full: Sluice against itself. With nothing set claims are ten times smaller, and what
 * a claim pays for a limit weighs ten times as much.
 */
export function neverBinds(cast: Cast): Workload[] {
  return [
    neverBindsOf(cast, "never-binds", "no-ops", "history on"),
    neverBindsOf(cast, "never-binds-default", "no-ops, nothing set,", "default"),
    neverBindsOf(cast, "never-binds-5ms", `tasks of ${SLEEP_MS} ms`, "history on", {
      work: { sleepMs: SLEEP_MS },
    }),
  ];
}

function neverBindsOf(
  cast: Cast,
  name: string,
  what: string,
  variant: "history on" | "default",
  work: Pick<Drain, "work"> = {},
): Workload {
  const entrant = cast.sluice(variant);
  // The times of all are noted, so that all do the same.
  const subject = (of: string, shape: Shape): Subject => drainSubject(entrant, { shape, ...work, watch: true }, of);
  return {
    name,
    about: `${what} under a limit of a million, which never binds`,
    unit: "tasks/s",
    better: "more",
    sizing: { by: "seconds", alike: true },
    base: { subject: UNLIMITED },
    subjects: [
      subject(UNLIMITED, {}),
      subject("a named limit", { limit: NEVER_BINDS }),
      subject("the type's own concurrency", { scene: { name: "own-limit", beside: 0 } }),
    ],
  };
}
