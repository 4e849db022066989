import { isSluiceError, SluiceError } from "../core/error.js";
import { isLimit, type Limit, type TotalLimit } from "../core/limit.js";
import type { PlacedLimit } from "../core/place.js";
import { quote } from "../core/quote.js";
import type { TaskTerms } from "../core/terms.js";
import type { Database } from "../postgres/database.js";
import { declareContract, declareUse, declareLimit, type DeclareLimitOptions } from "../postgres/declare.js";
import { fillLimit } from "../postgres/fill.js";
import { declareWorkflow } from "../postgres/workflow/declare.js";
import { compileGraph } from "../workflow/compile.js";
import { digestOf } from "../workflow/digest.js";
import type { Graph } from "../workflow/graph.js";
import type { Workflow } from "../workflow/workflow.js";

/**
 * What this process has made known to the database: each limit and each type once, outside every
 * transaction of the caller's, so that an open transaction holds no lock that a worker may want.
 */
export class Declarations {
  readonly #db: Database;
  readonly #streams = new Map<TaskTerms<never>, Promise<number>>();
  readonly #limits = new Map<string, Promise<number>>();
  /** Limits that an enqueue decides, by shape: the database forgets them when they are unused for long. */
  readonly #transient = new Map<string, Promise<number>>();
  #transientSinceMs = performance.now();
  readonly #pairs = new Map<string, Promise<void>>();
  readonly #numbers = new Map<string, Promise<void>>();
  readonly #graphs = new Map<string, Promise<number>>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** What the database has forgotten is declared again when it is next needed. */
  forget(): void {
    for (const known of [this.#streams, this.#limits, this.#pairs, this.#graphs]) known.clear();
    this.#forgetTransient();
  }

  /** The stream of a type. */
  stream(terms: TaskTerms<never>): Promise<number> {
    return once(this.#streams, terms, () => this.#declare(terms, false));
  }

  /** The id of a limit. */
  limit(limit: Pick<Limit, "name" | "total" | "perKey">): Promise<number> {
    return once(this.#limits, shapeOf(limit), () => this.#declareLimit(limit, {}));
  }

  /** The ids of a task's limits. */
  async limits(stream: number, placed: readonly PlacedLimit[]): Promise<readonly number[]> {
    return Promise.all(placed.map(({ limit }) => this.limitOf(stream, limit)));
  }

  /** The id of a limit that tasks of this stream pass. */
  async limitOf(stream: number, limit: Pick<Limit, "name" | "total" | "perKey">): Promise<number> {
    const id = await (this.#limits.get(shapeOf(limit)) ?? this.#transientLimit(limit));
    await once(this.#pairs, `${id} ${stream}`, () => declareUse(this.#db, stream, id));
    return id;
  }

  /** Declared again from time to time, so that what we use is not forgotten. */
  #transientLimit(limit: Pick<Limit, "name" | "total" | "perKey">): Promise<number> {
    // guard: groups in use are declared again -> test/tasks/groups.test.ts: "a client declares a group again before the database may forget it"
    if (performance.now() - this.#transientSinceMs /* guard:redeclare */ > TRANSIENT_MS_MAX /* end */)
      this.#forgetTransient();
    return once(this.#transient, shapeOf(limit), () => this.#declareLimit(limit, { transient: true }));
  }

  #forgetTransient(): void {
    this.#transient.clear();
    this.#numbers.clear();
    this.#transientSinceMs = performance.now();
  }

  /** The id of a limit named at enqueue; its number counts where nobody has set one. */
  async group(stream: number, limit: TotalLimit): Promise<number> {
    const id = await this.limitOf(stream, limit);
    const { total } = limit;
    if (total !== null) await once(this.#numbers, String(id), () => fillLimit(this.#db, id, total));
    return id;
  }

  /** The graph of a workflow, by which runs are started. Its types are declared with it. */
  workflow({ name, digest, graph, contracts }: Workflow): Promise<number> {
    return once(this.#graphs, `${digest} ${name}`, async () => {
      for (const terms of contracts) await this.stream(terms as TaskTerms<never>);
      return declareWorkflow(this.#db, compileGraph(graph), this.#db.aside);
    });
  }

  /**
   * Stores a graph as the last one of its name, whatever was stored before. The types that it names must have been
   * declared: else `unknown_task`.
   */
  async graph(graph: Graph): Promise<void> {
    const id = await declareWorkflow(this.#db, compileGraph(graph), this.#db.aside);
    this.#graphs.set(`${digestOf(graph)} ${graph.name}`, Promise.resolve(id));
  }

  /** Makes the numbers of the code the declared ones; overrides stay. For a deploy. */
  async sync(all: readonly (Limit | TaskTerms)[]): Promise<void> {
    for (const one of all) {
      if (isLimit(one)) await this.#declareLimit(one, { sync: true });
      else await this.#declare(one as TaskTerms<never>, true);
    }
  }

  async #declare(terms: TaskTerms<never>, sync: boolean): Promise<number> {
    const uses = terms.limitList;
    const ids: number[] = [];
    for (const { limit } of uses ?? []) {
      ids.push(sync ? await this.#declareLimit(limit, { sync }) : await this.limit(limit));
    }
    const limitIds = uses === null ? null : ids;
    return declareContract(this.#db, terms, limitIds, sync).catch(explained(terms.type));
  }

  #declareLimit(limit: Pick<Limit, "name" | "total" | "perKey">, options: DeclareLimitOptions): Promise<number> {
    return declareLimit(this.#db, limit, options).catch(explained(limit.name));
  }
}

/** By shape too: the database refuses a second shape of the same name, and it must be asked. */
function shapeOf({ name, total, perKey }: Pick<Limit, "name" | "total" | "perKey">): string {
  return `${total === undefined} ${perKey === undefined} ${name}`;
}

/** Two may want one name in different shapes without knowing: a type's `concurrency` has the type's name. */
function explained(name: string): (e: unknown) => never {
  return (e) => {
    if (!isSluiceError(e, "limit_shape")) throw e;
    const both = `limit(${quote(name)}) and the concurrency of a task ${quote(name)} are one limit`;
    throw new SluiceError(e.code, `${e.message} (${both})`, {
      cause: e,
      details: { ...e.details, limit: name },
    });
  };
}

// Names may come from inputs; what is forgotten is asked again.
const KNOWN_MAX = 10_000;
// Well below the time after which the database forgets a group that is unused: see GROUP_UNUSED_MS of the keeper.
const TRANSIENT_MS_MAX = 15 * 60_000;

/** Asks once per key; a failure is forgotten, so that the next one asks again. */
function once<K, V>(known: Map<K, Promise<V>>, key: K, ask: () => Promise<V>): Promise<V> {
  let answer = known.get(key);
  if (answer === undefined) {
    answer = ask();
    for (const oldest of known.size < KNOWN_MAX ? [] : [...known.keys()].slice(0, KNOWN_MAX / 10)) known.delete(oldest);
    known.set(key, answer);
    answer.catch(() => known.delete(key));
  }
  return answer;
}
