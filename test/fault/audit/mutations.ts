// Ways to spoil a log in which all was well. Each gives undefined if there is nothing to spoil.
import type { Line } from "../../../fault/audit/line.js";
import type { Random } from "../../../fault/random.js";
import { simTerms } from "./simulator.js";
import { Tale, type Found } from "./story.js";

type Of<K extends Line["kind"]> = Extract<Line, { readonly kind: K }>;
type Lines = readonly Line[];

export interface Mutation {
  readonly what: string;
  /** Which of these must be found: at least one. */
  readonly finds: readonly (keyof Found)[];
  readonly spoil: (lines: Lines, random: Random) => Line[] | undefined;
}

function allOf<K extends Line["kind"]>(lines: Lines, kind: K): Of<K>[] {
  return lines.filter((line): line is Of<K> => line.kind === kind);
}

function pick<T>(random: Random, from: readonly T[]): T | undefined {
  return from.length === 0 ? undefined : random.pick(from);
}

/** Outcomes of tasks without a retry by hand. */
function outcomes(lines: Lines): Of<"accepted">[] {
  const retried = new Set(lines.flatMap((line) => (line.kind === "retrying" ? line.task : [])));
  return allOf(lines, "accepted").filter(({ task }) => !retried.has(task));
}

const without = (lines: Lines, line: Line): Line[] => lines.filter((one) => one !== line);
const instead = (lines: Lines, line: Line, other: Line): Line[] => lines.map((one) => (one === line ? other : one));

export const mutations: readonly Mutation[] = [
  {
    what: "an outcome is dropped",
    finds: ["lost"],
    spoil: (lines, random) => {
      const accepted = pick(random, outcomes(lines));
      return accepted === undefined ? undefined : without(lines, accepted);
    },
  },
  {
    what: "an outcome is recorded twice",
    finds: ["acceptedTwice"],
    spoil: (lines, random) => {
      const accepted = pick(random, outcomes(lines));
      return accepted && [...lines, { ...accepted, at: accepted.at + 1 }];
    },
  },
  {
    what: "a success is recorded under the claim of an earlier execution",
    finds: ["succeededWithoutRun"],
    spoil: (lines, random) => {
      const starts = allOf(lines, "start");
      const first = (task: string) => starts.find((start) => start.task === task)?.claim ?? null;
      const again = outcomes(lines).filter(({ state, task, claim }) => state === "succeeded" && first(task) !== claim);
      const accepted = pick(random, again);
      return accepted && instead(lines, accepted, { ...accepted, claim: first(accepted.task) });
    },
  },
  { what: "two starts of a key are swapped", finds: ["outOfOrder"], spoil: swapped },
  { what: "a task starts above a full limit", finds: ["overLimit"], spoil: oneMore },
  {
    what: "an end is moved behind its outcome",
    finds: ["succeededTooEarly"],
    spoil: (lines, random) => {
      const end = pick(
        random,
        allOf(lines, "end").filter(({ how }) => how === "completed"),
      );
      const outcome = allOf(lines, "accepted").find(({ task }) => task === end?.task);
      return end && outcome && instead(lines, end, { ...end, at: outcome.at + 0.001 });
    },
  },
  { what: "an end is moved behind the next start of its key", finds: ["overlapped"], spoil: overlapping },
  {
    what: "an attempt is burnt",
    finds: ["attemptsBurnt"],
    spoil: (lines, random) => {
      const start = pick(random, allOf(lines, "start"));
      return start && instead(lines, start, { ...start, attempt: start.attempt + 1 });
    },
  },
  {
    what: "a task starts before its time",
    finds: ["early"],
    spoil: (lines, random) => {
      const start = pick(
        random,
        allOf(lines, "start").filter(({ runAt }) => runAt !== null),
      );
      return start && instead(lines, start, { ...start, at: start.runAt! - 0.5 });
    },
  },
  {
    what: "a task runs again after its outcome",
    finds: ["ranTwiceWithoutCause"],
    spoil: (lines, random) => {
      const accepted = pick(random, outcomes(lines));
      const start = allOf(lines, "start").find(({ task }) => task === accepted?.task);
      return accepted && start && [...lines, { ...start, claim: "again", at: accepted.at + 1 }];
    },
  },
  {
    what: "an offer is dropped",
    finds: ["neverEnqueued"],
    spoil: (lines, random) => {
      const ran = new Set(allOf(lines, "start").map(({ tag }) => tag));
      const offered = pick(
        random,
        allOf(lines, "offered").filter(({ tag }) => ran.has(tag)),
      );
      return offered && without(lines, offered);
    },
  },
];

/** The first starts of two tasks of a key: the later place begins at the time of the earlier. */
function swapped(lines: Lines, random: Random): Line[] | undefined {
  const one = pick(
    random,
    allOf(lines, "start").filter(({ orderKey }) => orderKey !== null),
  );
  const other = allOf(lines, "start").find(
    ({ orderKey, task, place }) => orderKey === one?.orderKey && task !== one?.task && place! > one.place!,
  );
  if (one === undefined || other === undefined) return undefined;
  return instead(instead(lines, one, { ...one, at: other.at }), other, { ...other, at: one.at });
}

/** Beside the last of those that fill a total. */
function oneMore(lines: Lines, random: Random): Line[] | undefined {
  let running = 0;
  const pooled = new Set<string>();
  const full = lines.filter((line) => {
    if (line.kind === "start" && line.limits.includes("pool")) {
      pooled.add(line.claim);
      return ++running === simTerms.limits["pool"];
    }
    if (line.kind === "end" && pooled.has(line.claim)) running--;
    return false;
  });
  const last = pick(random, full);
  const more = new Tale("more/1", { limits: ["pool"] });
  return last && [...lines, ...more.whole(last.at + 0.001, last.at + 0.5, { process: last.process })];
}

function overlapping(lines: Lines, random: Random): Line[] | undefined {
  const starts = allOf(lines, "start").filter(({ orderKey }) => orderKey !== null);
  const next = pick(random, starts);
  const before = starts.findLast(
    ({ orderKey, task, at }) => orderKey === next?.orderKey && task !== next.task && at < next.at,
  );
  const end = allOf(lines, "end").find(({ claim }) => claim === before?.claim);
  return next && end && instead(lines, end, { ...end, at: next.at + 0.5 });
}
