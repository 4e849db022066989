import type pg from "pg";
import type { Logger } from "../core/ports.js";
import type { Database } from "./database.js";
import { tellTrouble } from "./errors.js";
import { destroy, part } from "./part.js";

type Hear = (payload: string) => void;

const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;
const PING_MS = 30_000;
const REPLY_MS_MAX = 10_000;
// How long to keep listening after the last need has ended.
const LINGER_MS = 5_000;

/**
 * Notifications as hints: nothing depends on receiving one. It listens only while needed, because NOTIFY signals every
 * listening backend, whatever the channel. Every time it begins to listen, and so after every reconnect, all listeners
 * receive "again", because earlier notifications are lost; when the connection is lost, they receive "deaf".
 */
export class Listener {
  readonly #db: Database;
  readonly #url: string | undefined;
  readonly #log: Logger;
  readonly #ears = new Set<Hear>();
  #needs = 0;
  /** Keyed by the one payload they wait for: with thousands of waits a notification costs no more than with one. */
  readonly #earsOf = new Map<string, Set<() => void>>();
  #client: pg.Client | null = null;
  #connected = false;
  #timer: NodeJS.Timeout | null = null;
  #linger: NodeJS.Timeout | null = null;
  #retryMs = RETRY_MS_MIN;
  #closed = false;
  #state: "silent" | "changing" | "listening" = "silent";
  #ping: NodeJS.Timeout | null = null;

  constructor(db: Database, options: { readonly url?: string | undefined; readonly log: Logger }) {
    this.#db = db;
    this.#url = options.url;
    this.#log = options.log;
  }

  /** Opens the connection; a failure is retried in the background. */
  async start(): Promise<void> {
    const client = this.#db.client(this.#url);
    client.on("error", (e) => this.#lost(client, e));
    client.on("end", () => this.#lost(client, new Error("connection ended")));
    client.on("notification", (n) => this.#tell(n.payload ?? ""));
    this.#client = client;
    try {
      await client.connect();
    } catch (e) {
      this.#lost(client, e);
      return;
    }
    if (this.#client !== client) return;
    this.#connected = true;
    this.#retryMs = RETRY_MS_MIN;
    this.#pingLater(client);
    if (this.#needs > 0) await this.#follow();
  }

  /** Whether notifications arrive, as far as this process can tell. */
  get hears(): boolean {
    return this.#state === "listening";
  }

  /** Whether the connection is open, so that it could listen. */
  get connected(): boolean {
    return this.#connected;
  }

  /** Calls `hear` with every notification while something needs the listener. Returns a function that unsubscribes. */
  on(hear: Hear): () => void {
    this.#ears.add(hear);
    return () => this.#ears.delete(hear);
  }

  /**
   * Starts to listen, if it does not yet. Returns a function that ends the need; calling it twice is safe. lingers: the
   * next need is likely to come soon.
   */
  need({ lingers }: { readonly lingers: boolean }): () => void {
    this.#needs++;
    if (this.#linger !== null) clearTimeout(this.#linger);
    this.#linger = null;
    if (this.#state === "silent") void this.#follow();
    let needed = true;
    return () => {
      if (!needed) return;
      needed = false;
      if (--this.#needs === 0) this.#lingerOn(lingers ? LINGER_MS : 0);
    };
  }

  /** Calls `hear` only for this payload and for "again". Returns a function that unsubscribes. */
  onPayload(payload: string, hear: () => void): () => void {
    const ears = this.#earsOf.get(payload) ?? new Set();
    this.#earsOf.set(payload, ears.add(hear));
    return () => {
      ears.delete(hear);
      if (ears.size === 0 && this.#earsOf.get(payload) === ears) this.#earsOf.delete(payload);
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#connected = false;
    this.#state = "silent";
    for (const timer of [this.#timer, this.#ping, this.#linger]) if (timer !== null) clearTimeout(timer);
    if (this.#client !== null) await part(this.#client);
  }

  #tell(payload: string): void {
    for (const hear of this.#ears) hear(payload);
    for (const hear of this.#earsOf.get(payload) ?? []) hear();
    if (payload !== "again") return;
    for (const ears of this.#earsOf.values()) for (const hear of ears) hear();
  }

  #lingerOn(ms: number): void {
    if (this.#closed) return;
    this.#linger = setTimeout(() => {
      this.#linger = null;
      void this.#follow();
    }, ms).unref();
  }

  /** Adjusts the connection to the current need, one change at a time. */
  async #follow(): Promise<void> {
    const client = this.#client;
    if (client === null || !this.#connected || this.#state === "changing") return;
    const listens = this.#state === "listening";
    const wanted = this.#needs > 0;
    if (listens === wanted) return;
    this.#state = "changing";
    // A connecting caller may wait for this.
    const late = setTimeout(() => this.#lost(client, new Error("no answer")), REPLY_MS_MAX).unref();
    try {
      await client.query(wanted ? `listen "${this.#db.schema}"` : "unlisten *");
    } catch (e) {
      this.#lost(client, e);
      return;
    } finally {
      clearTimeout(late);
    }
    if (this.#client !== client || this.#closed) return;
    this.#state = wanted ? "listening" : "silent";
    if (wanted) this.#tell("again");
    // The need may have changed meanwhile. Stopping is not urgent.
    if (!wanted && this.#needs > 0) await this.#follow();
    else if (wanted && this.#needs === 0 && this.#linger === null) this.#lingerOn(0);
  }

  /** A half-open connection sends nothing, so ping it from time to time. */
  #pingLater(client: pg.Client): void {
    this.#ping = setTimeout(() => {
      const late = (): void => this.#lost(client, new Error("no answer"));
      this.#ping = setTimeout(late, REPLY_MS_MAX).unref();
      const answered = (): void => {
        if (this.#ping !== null) clearTimeout(this.#ping);
        if (this.#client === client && !this.#closed) this.#pingLater(client);
      };
      // The connection itself reports a failure of this query.
      client.query("select").then(answered, () => {});
    }, PING_MS).unref();
  }

  #lost(client: pg.Client, e: unknown): void {
    if (this.#closed || this.#client !== client) return;
    const heard = this.hears;
    this.#client = null;
    this.#connected = false;
    this.#state = "silent";
    if (this.#ping !== null) clearTimeout(this.#ping);
    destroy(client);
    if (heard) this.#tell("deaf");
    tellTrouble(this.#log, "the connection that listens was lost; polling goes on", e);
    const waitMs = this.#retryMs * (0.5 + Math.random() / 2);
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
    this.#timer = setTimeout(() => void this.start(), waitMs).unref();
  }
}
