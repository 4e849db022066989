import { limit, Sluice, task, type, type TaskContract } from "../../../src/index.js";
import type { Recipe } from "../databases.js";

interface Nothing {
  readonly n: number;
}

type Contract = TaskContract<Nothing, Nothing>;

/** A backlog whose claims are looked at. */
export interface Scenario {
  readonly name: string;
  readonly about: string;
  /** Types whose slots can all be taken; none: nothing is limited. */
  readonly limited: readonly string[];
  readonly contracts: readonly Contract[];
}

const TYPES = 100;
const LIMIT = 10;

const names = Array.from({ length: TYPES }, (_, i) => `type-${i}`);
const [first] = names as [string];

/**
 * The three of the checklist; the last stands for two readings of "all limited": every type has a
 * limit of its own, or all share one. They wait in different tables.
 */
export const scenarios: readonly Scenario[] = [
  {
    name: "no-limits",
    about: `${TYPES} types, none limited`,
    limited: [],
    contracts: names.map((name) => plain(name)),
  },
  {
    name: "one-limited",
    about: `${TYPES} types, one of them limited to ${LIMIT}`,
    limited: [first],
    contracts: names.map((name) => (name === first ? ownLimit(name) : plain(name))),
  },
  {
    name: "all-limited",
    about: `${TYPES} types, each limited to ${LIMIT}`,
    limited: names,
    contracts: names.map((name) => ownLimit(name)),
  },
  {
    name: "all-share-one",
    about: `${TYPES} types, all under one limit of ${LIMIT}`,
    limited: names,
    contracts: names.map((name) => sharedLimit(name)),
  },
];

/** So many tasks wait, in turns: what is next is of many types. */
export function recipeOf(scenario: Scenario, pending: number): Recipe {
  return {
    name: `plans ${scenario.name} ${pending}`,
    async fill(url) {
      const sluice = await Sluice.connect({ url, listen: false });
      try {
        for (let turn = 0; turn < TURNS; turn++)
          for (const [i, contract] of scenario.contracts.entries())
            await sluice.enqueueMany(contract, inputs(Math.ceil(shareOf(i) * (pending / TURNS))));
      } finally {
        await sluice.close();
      }
    },
  };
}

const TURNS = 10;
// Among the first that a claim looks at, and not those it takes from.
const LARGE = [10, 11, 12, 13];

/**
 * Four types of a fifth of all tasks each, and the others share what is left: a claim must not read a
 * large type from which it takes nothing, and many small ones must not add up.
 */
function shareOf(i: number): number {
  return LARGE.includes(i) ? 0.2 : 0.2 / (TYPES - LARGE.length);
}

function* inputs(count: number): Generator<Nothing> {
  for (let n = 0; n < count; n++) yield { n };
}

function plain(name: string): Contract {
  return task(name, { input: type<Nothing>() });
}

function ownLimit(name: string): Contract {
  return task(name, { input: type<Nothing>(), concurrency: LIMIT });
}

function sharedLimit(name: string): Contract {
  return task(name, { input: type<Nothing>(), limits: [limit("shared", { total: LIMIT })] });
}
