import type pg from "pg";
import { SluiceError } from "../core/error.js";
import type { Queryable } from "../core/ports.js";
import { OWN_TRANSACTION, type Backend, type ServerTransaction } from "../postgres/backend.js";
import { fromDriver, isOutageOf, isReadOnly, isShortage } from "../postgres/errors.js";
import { destroy } from "../postgres/part.js";
import type { Execution } from "./execution.js";

/** Asks about one of our connections over another one. */
export interface Probe {
  look(pid: number): Promise<Backend | null>;
  /** Ends the transaction of a connection that was given up. */
  end(transaction: ServerTransaction): Promise<unknown>;
}

/** How transactions of handlers are lent their connections. */
export interface Lending {
  readonly pool: pg.Pool;
  /** How long a statement of ours may take: begin, completion, commit and rollback. Default 10 s. */
  readonly replyMsMax?: number | undefined;
  /** Without one, a statement of the handler's on a dead connection is waited for until its task times out. */
  readonly probe?: Probe | undefined;
}

const REPLY_MS_MAX = 10_000;
const CAUSES_MAX = 8;

/**
 * A connection while a transaction of an execution holds it. A connection can be dead without anybody telling: the network
 * swallows what is sent, and no reset comes. Statements of our own have a deadline. A handler's may take as long as
 * they like, so the server is asked over another connection whether it is at work on them.
 */
export class HeldConnection {
  /** For the handler. */
  readonly tx: Queryable = { query: (text, params) => this.#queryOfHandler(text, params) };
  /** For statements of ours. */
  readonly own: Queryable = { query: (text, params) => this.#queryOfOurs(text, params) };
  readonly #client: pg.PoolClient;
  readonly #o: Lending;
  readonly #replyMsMax: number;
  /** What was told of an outage, as it was first thrown. */
  readonly #outages = new WeakSet<object>();
  readonly #underWay = new Set<Promise<unknown>>();
  #broken: Error | undefined;
  #over = false;
  #transaction: ServerTransaction | null = null;
  #watch: NodeJS.Timeout | null = null;
  #looking = false;
  /** How the connection was when a statement of the handler's was last looked after. */
  #seen = "";

  private constructor(client: pg.PoolClient, lending: Lending) {
    this.#client = client;
    this.#o = lending;
    this.#replyMsMax = lending.replyMsMax ?? REPLY_MS_MAX;
    // A connection that breaks between two statements tells by an event; unheard, it ends the process.
    client.on("error", this.#hear);
  }

  /** Waits for its turn. That no connection can be opened is no failure of the execution, whatever the reason. */
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
    // In one go, so that it costs no round trip.
    const text = `begin isolation level read committed; ${OWN_TRANSACTION}`;
    const replies = (await this.own.query(text)) as unknown as { rows: ServerTransaction[] }[];
    this.#transaction = replies[1]?.rows[0] ?? null;
    if (this.#o.probe === undefined || this.#transaction === null) return;
    this.#watch = setInterval(() => void this.#look(), this.#replyMsMax / 2).unref();
  }

  /** Never throws: what cannot be rolled back is closed. */
  async rollback(): Promise<void> {
    await this.own.query("rollback").catch((e: unknown) => (this.#broken ??= e as Error));
  }

  /** It is not worth keeping. */
  breaks(e: Error): void {
    this.#broken ??= e;
  }

  /** Its transaction can come to nothing: ends the connection at once, without waiting for anything. */
  cut(why: Error): void {
    this.#broken ??= why;
    destroy(this.#client);
    if (this.#transaction !== null) void this.#o.probe?.end(this.#transaction).catch(() => {});
  }

  giveBack(): void {
    if (this.#over) return;
    this.#over = true;
    if (this.#watch !== null) clearInterval(this.#watch);
    // One that is destroyed has something left to say.
    if (this.#broken === undefined) this.#client.off("error", this.#hear);
    this.#client.release(this.#broken);
  }

  /** Whether what the transaction ended with comes from an outage, also inside a library's error that wraps it. */
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
    // After the end the connection is somebody else's: a handler that kept its tx must not write into it.
    if (this.#over) throw new SluiceError("not_claimed", "this transaction has ended");
    // guard: a handler's statement that needs too much has failed -> test/worker/outage.test.ts: "errors of the handler's own count as failures, whatever they look like"
    const asked = this.#ask(text, params /* guard:shortage */, (e) => !isShortage(e) /* end */);
    const settled = asked.catch(() => {});
    this.#underWay.add(settled);
    return asked.finally(() => this.#underWay.delete(settled));
  }

  async #queryOfOurs(text: string, params?: unknown[]): Promise<pg.QueryResult> {
    // What the handler did not wait for stands before it on the connection, and has no deadline.
    if (this.#underWay.size > 0) await Promise.all(this.#underWay);
    // guard: our own statements have a deadline -> test/fault/half-open.test.ts: "a connection that swallows the commit costs no attempt, and its place comes back"
    const late = setTimeout(() => /* guard:deadline */ this.cut(noReply(this.#replyMsMax)) /* end */, this.#replyMsMax);
    try {
      return await this.#ask(text, params);
    } catch (e) {
      // A server that takes no writes is being replaced by another.
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

  /** Cuts the connection if the server does not know it, or twice in a row waits for what it was sent long ago. */
  async #look(): Promise<void> {
    if (this.#underWay.size === 0) return void (this.#seen = "");
    // Two that wait behind a long statement of the keeper's are answered in one moment: that is not twice in a row.
    if (this.#looking) return;
    this.#looking = true;
    const asked = [...this.#underWay][0];
    // That nobody can be asked says nothing about this connection.
    const found = await this.#o.probe!.look(this.#transaction!.pid).catch(() => undefined);
    this.#looking = false;
    if (found === undefined || this.#over || !this.#underWay.has(asked!)) return;
    const seen = found === null ? "gone" : found.idle ? `${found.since} ${this.#bytesRead}` : "";
    // guard: a connection that the server does not work for is cut -> test/fault/half-open.test.ts: "a connection that swallows a statement of the handler costs no attempt, and its place comes back"
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
