import type pg from "pg";
import { SluiceError } from "../core/error.js";
import type { Queryable } from "../core/ports.js";
import { OWN_TRANSACTION, type Backend, type ServerTransaction } from "../postgres/backend.js";
import { fromDriver, isOutageOf, isReadOnly, isShortage } from "../postgres/errors.js";
import { destroy } from "../postgres/part.js";
import type { Execution } from "./execution.js";

/** Checks one of this worker's connections over another one. */
export interface Probe {
  look(pid: number): Promise<Backend | null>;
  /** Ends the transaction of a connection that was given up. */
  end(transaction: ServerTransaction): Promise<unknown>;
}

/** How handler transactions obtain their connections. */
export interface Lending {
  readonly pool: pg.Pool;
  /** Time limit for the library's own statements: begin, completion, commit and rollback. Default 10 s. */
  readonly replyMsMax?: number | undefined;
  /** Without a probe, a handler's statement on a dead connection waits until its task times out. */
  readonly probe?: Probe | undefined;
}

const REPLY_MS_MAX = 10_000;
const CAUSES_MAX = 8;

/**
 * A connection that a transaction of an execution holds. A connection can be dead without any signal: the network drops
 * what is sent, and no reset arrives. The library's own statements have a deadline. A handler's statements may take any
 * time, so a probe asks the server over another connection whether it is executing them.
 */
export class HeldConnection {
  /** For the handler's statements. */
  readonly tx: Queryable = { query: (text, params) => this.#queryOfHandler(text, params) };
  /** For the library's own statements. */
  readonly own: Queryable = { query: (text, params) => this.#queryOfOurs(text, params) };
  readonly #client: pg.PoolClient;
  readonly #o: Lending;
  readonly #replyMsMax: number;
  /** Errors caused by an outage, as they were first thrown. */
  readonly #outages = new WeakSet<object>();
  readonly #underWay = new Set<Promise<unknown>>();
  #broken: Error | undefined;
  #over = false;
  #transaction: ServerTransaction | null = null;
  #watch: NodeJS.Timeout | null = null;
  #looking = false;
  /** The connection's state when #look last checked a handler's statement. */
  #seen = "";

  private constructor(client: pg.PoolClient, lending: Lending) {
    this.#client = client;
    this.#o = lending;
    this.#replyMsMax = lending.replyMsMax ?? REPLY_MS_MAX;
    // A connection that breaks between two statements emits an event; without a listener, it ends the process.
    client.on("error", this.#hear);
  }

  /** Waits for a connection. A failure to open one is not a failure of the execution, whatever the reason. */
  static async open(execution: Execution, lending: Lending): Promise<HeldConnection> {
    let client: pg.PoolClient;
    try {
      client = await lending.pool.connect();
    } catch (e) {
      throw execution.excuse(fromDriver(e));
    }
    return new HeldConnection(client, lending);
  }

  async begin(): Promise<void> {
    // One query string, so that it costs no extra round trip.
    const text = `begin isolation level read committed; ${OWN_TRANSACTION}`;
    const replies = (await this.own.query(text)) as unknown as { rows: ServerTransaction[] }[];
    this.#transaction = replies[1]?.rows[0] ?? null;
    if (this.#o.probe === undefined || this.#transaction === null) return;
    this.#watch = setInterval(() => void this.#look(), this.#replyMsMax / 2).unref();
  }

  /** Never throws. A connection that cannot roll back is closed. */
  async rollback(): Promise<void> {
    await this.own.query("rollback").catch((e: unknown) => (this.#broken ??= e as Error));
  }

  /** Marks the connection as not reusable. */
  breaks(e: Error): void {
    this.#broken ??= e;
  }

  /** The transaction can no longer succeed: closes the connection immediately, without waiting for anything. */
  cut(why: Error): void {
    this.#broken ??= why;
    destroy(this.#client);
    if (this.#transaction !== null) void this.#o.probe?.end(this.#transaction).catch(() => {});
  }

  giveBack(): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#watch !== null) clearInterval(this.#watch);
    // A destroyed connection may still emit an error.
    if (this.#broken === undefined) this.#client.off("error", this.#hear);
    this.#client.release(this.#broken);
  }

  /** Whether the transaction's error comes from an outage, even if a library wraps it in its own error. */
  fromOutage(e: unknown): boolean {
    let cause = e;
    for (let i = 0; i < CAUSES_MAX && typeof cause === "object" && cause !== null; i++) {
      if (this.#outages.has(cause)) return true;
      cause = causeOf(cause);
    }
    return false;
  }

  readonly #hear = (e: Error): void => void (this.#broken ??= e);

  async #queryOfHandler(text: string, params?: unknown[]): Promise<pg.QueryResult> {
    // After the end, the connection belongs to another transaction: a handler that kept its tx must not write into it.
    if (this.#over) throw new SluiceError("not_claimed", "this transaction has ended");
    // guard: a handler's statement that needs too much has failed -> test/worker/outage.test.ts: "errors of the handler itself count as failures, whatever they look like"
    const asked = this.#ask(text, params /* guard:shortage */, (e) => !isShortage(e) /* end */);
    const settled = asked.catch(() => {});
    this.#underWay.add(settled);
    return asked.finally(() => this.#underWay.delete(settled));
  }

  async #queryOfOurs(text: string, params?: unknown[]): Promise<pg.QueryResult> {
    // Statements that the handler did not await are ahead on the connection, and have no deadline.
    if (this.#underWay.size > 0) await Promise.all(this.#underWay);
    // guard: our own statements have a deadline -> test/fault/half-open.test.ts: "a connection that swallows the commit uses no attempt and is replaced"
    const late = setTimeout(() => /* guard:deadline */ this.cut(noReply(this.#replyMsMax)) /* end */, this.#replyMsMax);
    try {
      return await this.#ask(text, params);
    } catch (e) {
      // A read-only server is being replaced by another.
      if (isReadOnly(e)) this.#outages.add(e as object);
      throw e;
    } finally {
      clearTimeout(late);
    }
  }

  async #ask(
    text: string,
    params?: unknown[],
    excusable: (e: unknown) => boolean = () => true,
  ): Promise<pg.QueryResult> {
    try {
      return await this.#client.query(text, params);
    } catch (e) {
      if (isOutageOf(e, this.#broken) && excusable(e)) this.#outages.add(e as object);
      throw e;
    }
  }

  /**
   * Cuts the connection if two checks in a row find that the server has no such connection, or is still idle and
   * waiting for a statement that was sent long ago.
   */
  async #look(): Promise<void> {
    if (this.#underWay.size === 0) return void (this.#seen = "");
    // Skip overlapping checks: two that wait behind a long statement of the keeper are answered at the same moment,
    // which is not twice in a row.
    if (this.#looking) return;
    this.#looking = true;
    const asked = [...this.#underWay][0];
    // A failed probe says nothing about this connection.
    const found = await this.#o.probe!.look(this.#transaction!.pid).catch(() => undefined);
    this.#looking = false;
    if (found === undefined || this.#over || !this.#underWay.has(asked!)) return;
    const seen = found === null ? "gone" : found.idle ? `${found.since} ${this.#bytesRead}` : "";
    // guard: a connection that the server does not work for is cut -> test/fault/half-open.test.ts: "a connection that swallows a statement of the handler uses no attempt and is replaced"
    if (seen !== "" && seen === /* guard:working */ this.#seen /* end */)
      this.cut(new Error("the connection is half-open"));
    this.#seen = seen;
  }

  get #bytesRead(): number {
    const { connection } = this.#client as unknown as {
      connection?: { stream?: { bytesRead?: number } };
    };
    return connection?.stream?.bytesRead ?? 0;
  }
}

function noReply(ms: number): Error {
  return new Error(`the server did not reply within ${ms} ms`);
}

function causeOf(e: object): unknown {
  try {
    return (e as { cause?: unknown }).cause;
  } catch {
    return undefined;
  }
}
