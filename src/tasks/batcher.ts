import { AsyncResource } from "node:async_hooks";
import { isSluiceError, type ErrorCode, type SluiceError } from "../core/error.js";
import type { TaskTerms } from "../core/terms.js";
import type { Prepared, Shared } from "./prepare.js";
import { StatementKeys } from "./statement-key.js";

/** One task that waits to be sent. */
interface Call {
  readonly item: Prepared;
  readonly trace: string | null;
  resolve(id: string): void;
  reject(e: unknown): void;
}

/** Inserts tasks of one statement key in one statement, and returns their ids in the same order. */
export type SendBatch = (
  terms: TaskTerms<never>,
  common: Shared,
  batch: { readonly items: readonly Prepared[]; readonly traces: readonly (string | null)[] },
) => Promise<readonly string[]>;

/** Calls of one statement key: one statement. */
interface Batch {
  /** Increases with each new batch. A batch waits only for older ones, so there is no circular wait. */
  readonly age: number;
  readonly statementKey: string;
  /** The key under which calls find the batch while it is open. */
  readonly openKey: string;
  readonly terms: TaskTerms<never>;
  readonly common: Shared;
  readonly calls: Call[];
  bytes: number;
  sent: boolean;
  stalled: boolean;
  /** Older batches that must have ended before this one is sent. */
  readonly awaits: Set<Batch>;
  readonly followers: Set<Batch>;
  /** Runs a function in the asynchronous context of the first call. */
  readonly inContext: <T>(fn: () => T) => T;
}

const BATCH_TASKS_MAX = 1_000;
const BATCH_BYTES_MAX = 1024 * 1024;
// A statement in flight for longer than this no longer delays the next one of its key.
const STALLED_MS = 1_000;
/** Errors that apply to every call of the statement. Any other error may be caused by a single call. */
const FAULT_OF_NO_CALL: readonly ErrorCode[] = [
  "closed",
  "database_busy",
  // guard: a statement whose reply is lost is not sent again -> test/tasks/batcher.test.ts: "every call of a statement whose reply is lost rejects, and the statement is not sent again"
  /* guard:resend */ "database_unavailable" /* end */,
  "not_permitted",
  "prepare_unsupported",
  "schema_missing",
];

/**
 * Group commit of concurrent enqueues. A call is sent immediately unless a statement of its key is in flight; calls
 * that arrive meanwhile share the next statement. No call waits for a timer.
 *
 * - Each call keeps its own outcome. A refused statement is sent again in halves, down to the call at fault. After a
 *   lost reply it is unknown whether the statement committed, so all of its calls reject, as they would alone.
 * - Calls of one statement key get ascending ids in the order in which they were made.
 * - Tasks of one order key are sent in the order of their calls, even if their statement keys differ: a batch is sent
 *   only after the batches that hold earlier tasks of its order keys have ended.
 */
export class Batcher {
  readonly #send: SendBatch;
  readonly #statementsMax: number;
  readonly #statementKeys = new StatementKeys();
  /** Batches that still accept calls. */
  readonly #open = new Map<string, Batch>();
  readonly #unsent = new Set<Batch>();
  /** Unsent batches that do not wait for a batch of another statement key, oldest first. */
  readonly #ready = new Set<Batch>();
  /** Statement keys with a statement in flight that has not stalled. */
  readonly #busy = new Set<string>();
  /** For each order key, the youngest batch that holds one of its tasks and has not ended. */
  readonly #latest = new Map<string, Batch>();
  #age = 0;
  #underWay = 0;
  #pumping = false;
  #closed: SluiceError | null = null;

  /** statementsMax: the maximum number of statements in flight. */
  constructor(send: SendBatch, statementsMax: number) {
    this.#send = send;
    this.#statementsMax = statementsMax;
  }

  /** Enqueues one task and returns its id. */
  add(terms: TaskTerms<never>, common: Shared, item: Prepared, trace: string | null): Promise<string> {
    return new Promise((resolve, reject) => {
      if (this.#closed !== null) return reject(this.#closed);
      const batch = this.#batchFor(terms, common, item);
      batch.calls.push({ item, trace, resolve, reject });
      batch.bytes += bytesOf(item);
      if (item.order !== null) this.#latest.set(item.order, batch);
      void this.#pumpSoon();
    });
  }

  /** Rejects all calls that have not been sent. */
  close(reason: SluiceError): void {
    this.#closed = reason;
    for (const { calls } of this.#unsent) for (const call of calls) call.reject(reason);
    for (const list of [this.#unsent, this.#ready, this.#open, this.#latest]) list.clear();
  }

  /** Returns the open batch that takes this task, or a new one. */
  #batchFor(terms: TaskTerms<never>, common: Shared, item: Prepared): Batch {
    const statementKey = this.#statementKeys.of(terms, common, item);
    const of = { statementKey, terms, common };
    const behind = item.order === null ? undefined : this.#latest.get(item.order);
    if (behind === undefined) return this.#batchIn(statementKey, of, item);
    const isOpen = behind.statementKey === statementKey && this.#open.get(behind.openKey) === behind;
    if (isOpen && hasRoom(behind, item)) return behind;
    // Tasks that wait for another statement key never share a batch with tasks that do not.
    const openKey = isNextAnyway(behind, statementKey) ? statementKey : `${statementKey} behind`;
    const batch = this.#batchIn(openKey, of, item, behind);
    // guard: order keys keep the order of calls -> test/tasks/batcher.test.ts: "concurrent enqueues of one order key keep the order of the calls although their priorities differ"
    /* guard:call-order */ follow(batch, behind); /* end */
    return batch;
  }

  #batchIn(
    openKey: string,
    of: Pick<Batch, "statementKey" | "terms" | "common">,
    item: Prepared,
    behind?: Batch,
  ): Batch {
    const open = this.#open.get(openKey);
    const isYounger = open !== undefined && open.age > (behind?.age ?? 0);
    if (isYounger && hasRoom(open, item)) return open;
    const batch: Batch = {
      ...of,
      age: ++this.#age,
      openKey,
      calls: [],
      bytes: 0,
      sent: false,
      stalled: false,
      awaits: new Set(),
      followers: new Set(),
      inContext: AsyncResource.bind((fn) => fn()),
    };
    this.#open.set(openKey, batch);
    this.#unsent.add(batch);
    if (openKey === of.statementKey) this.#ready.add(batch);
    return batch;
  }

  /** Runs after the calls of this tick, so that they share a statement. */
  async #pumpSoon(): Promise<void> {
    if (this.#pumping) return;
    this.#pumping = true;
    await Promise.resolve();
    this.#pumping = false;
    this.#pump();
  }

  #pump(): void {
    for (const batch of this.#ready) {
      if (this.#underWay >= this.#statementsMax) return;
      if (!this.#busy.has(batch.statementKey) && batch.awaits.size === 0) void this.#run(batch);
    }
  }

  async #run(batch: Batch): Promise<void> {
    const { statementKey, calls } = batch;
    batch.sent = true;
    this.#shut(batch);
    this.#unsent.delete(batch);
    this.#ready.delete(batch);
    this.#underWay++;
    this.#busy.add(statementKey);
    const stalled = setTimeout(() => this.#stall(batch), STALLED_MS);
    stalled.unref();
    await batch.inContext(() => this.#deliver(batch, calls));
    clearTimeout(stalled);
    this.#underWay--;
    if (!batch.stalled) this.#busy.delete(statementKey);
    this.#end(batch);
    this.#pump();
  }

  /**
   * Lets the next batch of its statement key pass. Batches that must follow this one still wait, and accept no other
   * calls.
   */
  #stall(batch: Batch): void {
    batch.stalled = true;
    this.#busy.delete(batch.statementKey);
    for (const follower of batch.followers) this.#shut(follower);
    this.#pump();
  }

  #end(batch: Batch): void {
    for (const { item } of batch.calls) {
      if (item.order !== null && this.#latest.get(item.order) === batch) this.#latest.delete(item.order);
    }
    for (const follower of batch.followers) {
      follower.awaits.delete(batch);
      if (follower.awaits.size === 0 && this.#unsent.has(follower)) this.#ready.add(follower);
    }
  }

  /** Closes the batch to further calls. */
  #shut(batch: Batch): void {
    if (this.#open.get(batch.openKey) === batch) this.#open.delete(batch.openKey);
  }

  /** Never rejects: every call gets its own outcome. */
  async #deliver(batch: Batch, calls: readonly Call[]): Promise<void> {
    try {
      if (this.#closed !== null) throw this.#closed;
      const items = calls.map((call) => call.item);
      const traces = calls.map((call) => call.trace);
      const ids = await this.#send(batch.terms, batch.common, { items, traces });
      for (const [i, call] of calls.entries()) call.resolve(ids[i]!);
    } catch (e) {
      // guard: a refused call is refused alone -> test/tasks/batcher.test.ts: "a refused call rejects alone, and the calls that shared its statement succeed"
      if (calls.length /* guard:refuse-alone */ > /* end */ 1 && mayBeOfOneCall(e))
        return this.#deliverHalves(batch, calls);
      for (const call of calls) call.reject(e);
    }
  }

  async #deliverHalves(batch: Batch, calls: readonly Call[]): Promise<void> {
    const half = Math.ceil(calls.length / 2);
    await this.#deliver(batch, calls.slice(0, half));
    await this.#deliver(batch, calls.slice(half));
  }
}

/** Returns whether a batch of this statement key would have to wait for `behind` even without a common order key. */
function isNextAnyway(behind: Batch, statementKey: string): boolean {
  if (behind.statementKey !== statementKey || behind.stalled) return false;
  return behind.sent || behind.awaits.size === 0;
}

function follow(batch: Batch, older: Batch): void {
  batch.awaits.add(older);
  older.followers.add(batch);
}

function hasRoom(batch: Batch, item: Prepared): boolean {
  return batch.calls.length < BATCH_TASKS_MAX && batch.bytes + bytesOf(item) <= BATCH_BYTES_MAX;
}

/** Estimates the task's share of the statement's text. */
function bytesOf({ input, order, limits }: Prepared): number {
  const keys = limits.reduce((sum, { key }) => sum + (key?.length ?? 0), 0);
  return input.length + (order?.length ?? 0) + keys;
}

/** Returns whether one of its calls may have caused the statement to fail. */
function mayBeOfOneCall(e: unknown): boolean {
  return !FAULT_OF_NO_CALL.some((code) => isSluiceError(e, code));
}
