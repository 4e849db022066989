import pg from "pg";
import { SluiceError } from "../core/error.js";
import type { Database } from "./database.js";
import { fromDriver, isReadOnly, isReplyLost, unavailable } from "./errors.js";
import { destroy, part } from "./part.js";
import type { AnyStatement, Statement } from "./statement.js";

type Query = pg.QueryConfig & { readonly rowMode?: "array" };

const text = (value: string): string => value;
// JSON is returned as text, because readers need its length.
const types: pg.CustomTypesConfig = {
  getTypeParser: (oid, format) => (oid === pg.types.builtins.JSON ? text : pg.types.getTypeParser(oid, format)),
};

/**
 * A worker's own connection, opened on first use and reopened after it broke. A statement that gets no reply in time
 * closes its connection, because a half-open connection shows up like that. Nothing is sent twice: the caller decides
 * what a lost reply means.
 */
export class Connection {
  readonly #db: Database;
  readonly #replyMsMax: number;
  #client: pg.Client | null = null;
  #opening: Promise<pg.Client> | null = null;
  #closed = false;
  #last: Promise<unknown> = Promise.resolve();

  constructor(db: Database, replyMsMax: number) {
    this.#db = db;
    this.#replyMsMax = replyMsMax;
  }

  /** Rows as arrays, in the order of the statement's columns; JSON as text. */
  async rows(s: AnyStatement, values: unknown[]): Promise<unknown[][]> {
    const query: Query = { ...this.#db.named(s, values), rowMode: "array", types };
    return this.#query(query) as Promise<unknown[][]>;
  }

  async run<Row>(s: Statement<Row>, values: unknown[]): Promise<Row[]> {
    return this.#query(this.#db.named(s, values)) as Promise<Row[]>;
  }

  async close(): Promise<void> {
    this.#closed = true;
    const client = this.#client ?? (await this.#opening?.catch(() => null));
    this.#client = null;
    if (client != null) await part(client);
  }

  /** Runs one statement at a time: the keeper issues several at once, and the driver will not always queue them. */
  #query(query: Query): Promise<unknown[]> {
    const reply = this.#last.then(() => this.#send(query));
    this.#last = reply.catch(() => {});
    return reply;
  }

  async #send(query: Query): Promise<unknown[]> {
    const client = this.#client ?? (await this.#open());
    // guard: a statement without an answer is given up -> test/worker/properties.test.ts: "every claimed task is settled, released or lost with its lease, and none is settled twice under one claim"
    const watchdog = setTimeout(() => /* guard:give-up */ this.#drop(client) /* end */, this.#replyMsMax);
    try {
      return (await client.query(query)).rows as unknown[];
    } catch (e) {
      const told = fromDriver(e);
      if (isReplyLost(told) || isReadOnly(told)) this.#drop(client);
      throw told;
    } finally {
      clearTimeout(watchdog);
    }
  }

  #open(): Promise<pg.Client> {
    if (this.#closed) throw new SluiceError("stopped", "this connection was closed");
    this.#opening ??= this.#connect().finally(() => (this.#opening = null));
    return this.#opening;
  }

  async #connect(): Promise<pg.Client> {
    const client = this.#db.client();
    client.on("error", () => this.#drop(client));
    try {
      await client.connect();
    } catch (e) {
      destroy(client);
      throw unavailable(`cannot connect: ${(e as Error).message}`, e, { sent: false });
    }
    this.#client = client;
    return client;
  }

  #drop(client: pg.Client): void {
    if (this.#client === client) this.#client = null;
    destroy(client);
  }
}
