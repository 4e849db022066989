import { isSluiceError, SluiceError } from "../core/error.js";
import { isLimit, type Limit, type TotalLimit } from "../core/limit.js";
import type { PlacedLimit } from "../core/place.js";
import { quote } from "../core/quote.js";
import type { TaskTerms } from "../core/terms.js";
import type { Database } from "../postgres/database.js";
import { declareLimit, declareTerms, declareUse, type DeclareLimitOptions } from "../postgres/declare.js";
import { fillLimit } from "../postgres/fill.js";
import { declareWorkflow } from "../postgres/workflow/declare.js";
import { compileGraph } from "../workflow/compile.js";
import { digestOf } from "../workflow/digest.js";
import type { Graph } from "../workflow/graph.js";
import type { Workflow } from "../workflow/workflow.js";

/**
 * Limits and types that this process has declared in the database: each one once, outside the caller's transactions, so
 * that an open transaction holds no lock that a worker may need.
 */
export class Declarations {
  readonly #db: Database;
  readonly #streams = new Map<TaskTerms<never>, Promise<number>>();
  readonly #limits = new Map<string, Promise<number>>();
  /** Limits decided at enqueue, by shape: the database removes them after a long time without use. */
  readonly #transient = new Map<string, Promise<number>>();
  #transientSinceMs = performance.now();
  readonly #pairs = new Map<string, Promise<void>>();
  readonly #numbers = new Map<string, Promise<void>>();
  readonly #graphs = new Map<string, Promise<number>>();

  constructor(db: Database) {
    this.#db = db;
  }

  /** Clears the cache: limits and types that the database has removed are declared again when next needed. */
  forget(): void {
    for (const known of [this.#streams, this.#limits, this.#pairs, this.#graphs]) known.clear();
    this.#forgetTransient();
  }

  /** Returns the stream of a type. */
  stream(terms: TaskTerms<never>): Promise<number> {
    return once(this.#streams, terms, () => this.#declare(terms, false));
  }

  /** Returns the id of a limit. */
  limit(limit: Pick<Limit, "name" | "total" | "perKey">): Promise<number> {
    return once(this.#limits, shapeOf(limit), () => this.#declareLimit(limit, {}));
  }

  /** Returns the ids of a task's limits. */
  async limits(stream: number, placed: readonly PlacedLimit[]): Promise<readonly number[]> {
    return Promise.all(placed.map(({ limit }) => this.limitOf(stream, limit)));
  }

  /** Returns the id of a limit that tasks of this stream pass. */
  async limitOf(stream: number, limit: Pick<Limit, "name" | "total" | "perKey">): Promise<number> {
    const id = await (this.#limits.get(shapeOf(limit)) ?? this.#transientLimit(limit));
    await once(this.#pairs, `${id} ${stream}`, () => declareUse(this.#db, stream, id));
    return id;
  }

  /** Declares the limit again from time to time, so that the database does not remove limits in use. */
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

  /** Returns the id of a limit named at enqueue; its number applies only if none has been set. */
  async group(stream: number, limit: TotalLimit): Promise<number> {
    const id = await this.limitOf(stream, limit);
    const { total } = limit;
    if (total !== null) await once(this.#numbers, String(id), () => fillLimit(this.#db, id, total));
    return id;
  }

  /** Returns the graph of a workflow, by which runs are started. Declares its types as well. */
  workflow({ name, digest, graph, contracts }: Workflow): Promise<number> {
    return once(this.#graphs, `${digest} ${name}`, async () => {
      for (const terms of contracts) await this.stream(terms as TaskTerms<never>);
      return declareWorkflow(this.#db, compileGraph(graph), this.#db.aside);
    });
  }

  /**
   * Stores a graph as the latest one of its name, regardless of earlier ones. The types that it names must already be
   * declared; otherwise throws `unknown_task`.
   */
  async graph(graph: Graph): Promise<void> {
    const id = await declareWorkflow(this.#db, compileGraph(graph), this.#db.aside);
    this.#graphs.set(`${digestOf(graph)} ${graph.name}`, Promise.resolve(id));
  }

  /** Makes the numbers in the code the declared ones; overrides stay. Called at a deploy. */
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
    return declareTerms(this.#db, terms, limitIds, sync).catch(explained(terms.type));
  }

  #declareLimit(limit: Pick<Limit, "name" | "total" | "perKey">, options: DeclareLimitOptions): Promise<number> {
    return declareLimit(this.#db, limit, options).catch(explained(limit.name));
  }
}

/** Includes the shape: the database refuses a second shape of the same name, so each one must be sent to it. */
function shapeOf({ name, total, perKey }: Pick<Limit, "name" | "total" | "perKey">): string {
  return `${total === undefined} ${perKey === undefined} ${name}`;
}

/**
 * Explains a name conflict: a type's `concurrency` uses the type's name, so code may unknowingly declare one name in
 * two shapes.
 */
function explained(name: string): (e: unknown) => never {
  return (e) => {
    if (!isSluiceError(e, "limit_shape")) throw e;
    const both = `limit(${quote(name)}) and the concurrency of task ${quote(name)} are the same limit`;
    throw new SluiceError(e.code, `${e.message} (${both})`, {
      cause: e,
      details: { ...e.details, limit: name },
    });
  };
}

// Bounds the cache, because names may come from inputs. An evicted entry is requested again.
const KNOWN_MAX = 10_000;
// Well below the time after which the database removes an unused group: see GROUP_UNUSED_MS of the keeper.
const TRANSIENT_MS_MAX = 15 * 60_000;

/** Calls `ask` once per key; a failure is not cached, so the next call tries again. */
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
