import type { Limit } from "../core/limit.js";
import type { PlacedLimit } from "../core/place.js";
import type { TaskTerms } from "../core/terms.js";
import type { Database } from "../postgres/database.js";
import { declareContract, declareGateStream, declareLimit } from "../postgres/declare.js";

/**
 * What this process has made known to the database: each limit and each type once, outside every
 * transaction of the caller's, so that an open transaction holds no lock that a worker may want.
 */
export class Declarations {
  readonly #db: Database;
  readonly #streams = new Map<TaskTerms<never>, Promise<number>>();
  readonly #limits = new Map<string, Promise<number>>();
  readonly #pairs = new Map<string, Promise<void>>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** The stream of a type. */
  stream(terms: TaskTerms<never>): Promise<number> {
    return once(this.#streams, terms, () => this.#declare(terms, false));
  }

  /** The id of a limit. */
  limit(limit: Pick<Limit, "name" | "total" | "perKey">): Promise<number> {
    return once(this.#limits, limit.name, () => declareLimit(this.#db, limit, false));
  }

  /** The ids of a task's limits. */
  async limits(stream: number, placed: readonly PlacedLimit[]): Promise<readonly number[]> {
    return Promise.all(placed.map(({ limit }) => this.limitOf(stream, limit)));
  }

  /** The id of a limit that tasks of this stream pass. */
  async limitOf(stream: number, limit: Pick<Limit, "name" | "total" | "perKey">): Promise<number> {
    const id = await this.limit(limit);
    await once(this.#pairs, `${id} ${stream}`, () => declareGateStream(this.#db, id, stream));
    return id;
  }

  /** Makes the numbers of the code the declared ones; overrides stay. For a deploy. */
  async sync(all: readonly (Limit | TaskTerms<never>)[]): Promise<void> {
    for (const one of all) {
      if ("type" in one) await this.#declare(one, true);
      else await declareLimit(this.#db, one, true);
    }
  }

  async #declare(terms: TaskTerms<never>, sync: boolean): Promise<number> {
    const uses = terms.limitList;
    const ids: number[] = [];
    for (const { limit } of uses ?? []) {
      ids.push(sync ? await declareLimit(this.#db, limit, true) : await this.limit(limit));
    }
    return declareContract(this.#db, terms, uses === null ? null : ids, sync);
  }
}

/** Asks once per key; a failure is forgotten, so that the next one asks again. */
function once<K, V>(known: Map<K, Promise<V>>, key: K, ask: () => Promise<V>): Promise<V> {
  let answer = known.get(key);
  if (answer === undefined) {
    answer = ask();
    known.set(key, answer);
    answer.catch(() => known.delete(key));
  }
  return answer;
}
