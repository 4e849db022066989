import type { Scheduler } from "fast-check";
import type { Database } from "../../../src/postgres/database.js";
import type { AnyStatement } from "../../../src/postgres/statement.js";
import type { Row, Store } from "./store.js";

/** What happens to a statement on its way. */
export type Fate =
  "arrives" | "request lost" | "reply lost" | "vanishes" | "busy" | "refused" | "timed out" | "lease expires";

/** Observes every statement and its outcome. */
export interface Witness {
  /** Before anything else: the claims that it settles, with the kind of each outcome. */
  sent(s: Sent): void;
  /** The store has done it. */
  done(s: Sent): void;
  /** The worker has its reply. */
  answered(s: Sent): void;
  /** The worker was told that it was not done, or (lost) will never know. */
  failed(s: Sent, lost: boolean): void;
}

export interface Sent {
  readonly name: string;
  readonly worker: string;
  /** The token that it claims under, if it claims. */
  readonly token: string | null;
  readonly outcomes: readonly { readonly claim: string; readonly kind: string }[];
}

interface Query {
  readonly name: string;
  readonly values: readonly unknown[];
}

interface NetworkOptions {
  readonly store: Store;
  readonly scheduler: Scheduler;
  readonly witness: Witness;
  readonly nextFate: () => Fate;
}

/**
 * The way to the store: the worker's own lines and transactions run over connections like these. The
 * scheduler decides when a request and when its reply arrive. A connection that is taken down fails what
 * is under way on it at once, while the server may still do it, as late as the scheduler likes.
 */
export class Network {
  readonly #o: NetworkOptions;
  #transaction: Promise<unknown> = Promise.resolve();

  constructor(options: NetworkOptions) {
    this.#o = options;
  }

  /** As much of a Database as a worker uses. */
  get database(): Database {
    const database = {
      named: (s: AnyStatement, values: unknown[]) => ({ name: s.name, values }),
      client: () => new Connection(this),
      // The caller's pool and the worker's own pool: neither is used here.
      api: { totalCount: 0, idleCount: 0 },
      aside: {},
      pool: () => ({ connect: () => this.#connect(), end: async () => {} }),
      run: (s: AnyStatement, values: unknown[], on: { query(q: Query): Promise<unknown> }) =>
        on.query({ name: s.name, values }),
    };
    return database as unknown as Database;
  }

  /** One statement from here to the store and back. */
  async ask(query: Query, broken: Promise<never>): Promise<unknown[]> {
    const { witness } = this.#o;
    const sent = read(query);
    witness.sent(sent);
    try {
      const rows = await Promise.race([this.#carry(query, sent), broken]);
      witness.answered(sent);
      return rows;
    } catch (e) {
      witness.failed(sent, !isRefusal(e));
      throw e;
    }
  }

  async #carry(query: Query, sent: Sent): Promise<unknown[]> {
    const { store, scheduler, witness, nextFate } = this.#o;
    const fate = nextFate();
    await scheduler.schedule(Promise.resolve(), `${query.name} goes`);
    if (fate === "request lost") throw terminated();
    // Half-open: no answer and no error, until the line loses its patience.
    if (fate === "vanishes") await new Promise(() => {});
    if (fate === "busy") throw Object.assign(new Error("lock timeout"), { code: "55P03" });
    if (fate === "refused") throw Object.assign(new Error("bad text"), { code: "22P05" });
    if (fate === "timed out") throw Object.assign(new Error("too slow"), { code: "57014" });
    if (fate === "lease expires") store.expire(sent.worker);
    let answer: () => unknown[];
    try {
      const rows = perform(store, query);
      answer = () => rows;
    } catch (e) {
      answer = () => {
        throw e;
      };
    }
    witness.done(sent);
    await scheduler.schedule(Promise.resolve(), `${query.name} comes back`);
    if (fate === "reply lost") throw terminated();
    return answer();
  }

  /** A connection of the pool for handlers' transactions. */
  async #connect(): Promise<object> {
    const { store, scheduler, nextFate } = this.#o;
    // One at a time, as if the pool had one connection.
    const before = this.#transaction;
    let release = (): void => {};
    this.#transaction = new Promise<void>((resolve) => (release = resolve));
    await before;
    let commit = (): void => {};
    const query = async (q: string | Query): Promise<{ rows: unknown[] }> => {
      const fate = nextFate();
      await scheduler.schedule(Promise.resolve(), "a transaction's statement");
      if (fate === "request lost") throw terminated();
      if (typeof q !== "string") commit = inTransaction(store, q);
      if (q === "commit") commit();
      if (fate === "reply lost") throw terminated();
      return { rows: [] };
    };
    return { query, on: () => {}, off: () => {}, release };
  }
}

/** A client of the driver, as far as a line uses one. */
class Connection {
  readonly #network: Network;
  readonly #broken: Promise<never>;
  #break: (e: Error) => void = () => {};
  readonly connection = { stream: { destroy: () => this.#break(terminated()) } };

  constructor(network: Network) {
    this.#network = network;
    this.#broken = new Promise<never>((_, reject) => (this.#break = reject));
    this.#broken.catch(() => {});
  }

  on(): void {}
  async connect(): Promise<void> {}
  async end(): Promise<void> {}

  async query(query: Query): Promise<{ rows: unknown[] }> {
    return { rows: await this.#network.ask(query, this.#broken) };
  }
}

const terminated = (): Error => new Error("Connection terminated unexpectedly");

function isRefusal(e: unknown): boolean {
  return (e as { code?: string }).code !== undefined;
}

function listed(array: unknown): string[] {
  if (typeof array !== "string" || array === "{}") return [];
  return array.slice(1, -1).split(",");
}

const claimsOf = (ids: unknown, tokens: unknown): [string, string][] => {
  const listedTokens = listed(tokens);
  return listed(ids).map((id, i) => [id, listedTokens[i]!]);
};

/** What a statement is about, read from its parameters. */
function read({ name, values }: Query): Sent {
  const [worker, token] = values as [string, string];
  const none = { name, worker, token: null, outcomes: [] };
  if (name === "claim_suspect") return { ...none, token };
  if (name === "step") {
    const outcomes = claimsOf(values[4], values[5]).map((c) => ({ claim: c.join(), kind: "s" }));
    return { name, worker, token: values[3] === 0 ? null : token, outcomes };
  }
  if (name !== "settle") return none;
  const kinds = listed(values[3]);
  const outcomes = claimsOf(values[1], values[2]).map((c, i) => ({
    claim: c.join(),
    kind: kinds[i]!,
  }));
  return { name, worker, token: null, outcomes };
}

function inTransaction(store: Store, { values }: Query): () => void {
  const [worker, id, token] = values as [string, string, string];
  return store.settleInTransaction(worker, id, token);
}

function perform(store: Store, { name, values }: Query): unknown[] {
  const [worker] = values as [string];
  const statements: Record<string, () => unknown[]> = {
    statement_timeout: () => [{ ms: 0 }],
    register: () => store.register(values[2] as number),
    beat: () => store.beat(worker, values[3] as boolean),
    retire: () => store.retire(worker),
    survived: () => [{ left: store.survived(listed(values[0])) }],
    release_unknown: () => [{ released: store.releaseUnknown(worker, listed(values[1])) }],
    claim_suspect: () => store.claimSuspect(worker, values[1] as string, values[2] as string),
    release_suspect: () => {
      store.releaseSuspect(worker);
      return [{}];
    },
    step: () => store.step(worker, values[1] as string, values[3] as number, claimsOf(values[4], values[5])),
    settle: () => store.settle(worker, settlements(values)),
    // The log asks for the states of failed tasks, and makes do without.
    recorded: () => [],
    keeper_poll: () => store.look(),
    keep_leave: () => [{ keep_leave: "" }],
    due: () => store.due(),
    reap: () => store.reap(),
    prune_done: () => [{ pruned: 0, rested: true }],
    prune_expired: () => [{ pruned: 0 }],
    keep_lanes: () => [{ looked: 0 }],
    walked_rows: () => [],
    limit_names: () => [],
    workflow_keep: () => [{ moved: 0, next_ms: null, unplaced: false, after: "0" }],
    workflow_orphans: () => [{ cancelled: 0, after: "0", after_parent: "0" }],
    workflow_follow: () => [{ moved: 0, more: false }],
    workflow_prune: () => [{ pruned: 0, after: "0" }],
    workflow_prune_graphs: () => [{ pruned: 0 }],
    due_schedules: (): Row[] => [{ due: [], now_ms: 0, wait_ms: null }],
  };
  const known = statements[name];
  if (known === undefined) throw new Error(`the store in memory has no ${name}`);
  return known();
}

function settlements(values: readonly unknown[]): [string, string, string, number][] {
  const [kinds, delays] = [listed(values[3]), listed(values[4])];
  return claimsOf(values[1], values[2]).map(([id, token], i) => [id, token, kinds[i]!, Number(delays[i])]);
}
