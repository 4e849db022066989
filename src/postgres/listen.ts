import type pg from "pg";
import type { Logger } from "../core/ports.js";
import type { Database } from "./database.js";
import { tellTrouble } from "./errors.js";
import { destroy, part } from "./part.js";

/**
 * The first word of a notification's payload. All are sent by SQL functions, on the channel named like the schema:
 *
 * | payload | sent by | received by | effect |
 * |---|---|---|---|
 * | `wake:<worker>:<tasks>` | `base/ring.sql` | the worker, in `worker/assemble.ts` | claims up to that many tasks |
 * | `keep:<keeper>` | `keep/poll_by.sql` | the leading keeper, in `worker/assemble.ts` | polls immediately |
 * | `keep:all` | `keep/keep_leave.sql` | all keepers | poll soon, and one of them leads |
 * | `stop:<worker>` | `operate/cancel.sql` | the worker, in `worker/assemble.ts` | asks by heartbeat what to cancel |
 * | `done:<task>` | `settle/tell_awaited.sql` | calls that wait for it, in `tasks/ended.ts` | read its outcome |
 * | `done:-<run>` | `settle/tell_awaited.sql` | calls that wait for a run, in `runs/wait.ts` | read its outcome |
 */
export const NOTIFICATION = { wake: "wake", keep: "keep", stop: "stop", done: "done" } as const;
/** Instead of a keeper's id: every keeper. */
export const ALL_KEEPERS = "all";
/** Sent to subscribers by the listener itself: it listens now, and earlier notifications are lost. */
export const LISTENING = "listening";
/** Sent to subscribers by the listener itself: the connection was lost while it listened. */
export const DISCONNECTED = "disconnected";

type Subscriber = (payload: string) => void;

const RETRY_MS_MIN = 100;
const RETRY_MS_MAX = 5_000;
const PING_MS = 30_000;
const REPLY_MS_MAX = 10_000;
// How long to keep listening after the last need has ended.
const LINGER_MS = 5_000;

/**
 * Notifications as hints: nothing depends on receiving one. It listens only while needed, because NOTIFY signals every
 * listening backend, whatever the channel. Every time it begins to listen, and so after every reconnect, all
 * subscribers receive LISTENING, because earlier notifications are lost; when the connection is lost, they receive
 * DISCONNECTED.
 */
export class Listener {
  readonly #db: Database;
  readonly #url: string | undefined;
  readonly #log: Logger;
  readonly #subscribers = new Set<Subscriber>();
  #needs = 0;
  /** Keyed by the one payload they wait for: with thousands of waits a notification costs no more than with one. */
  readonly #subscribersTo = new Map<string, Set<() => void>>();
  #client: pg.Client | null = null;
  #connected = false;
  #timer: NodeJS.Timeout | null = null;
  #linger: NodeJS.Timeout | null = null;
  #retryMs = RETRY_MS_MIN;
  #closed = false;
  #state: "idle" | "changing" | "listening" = "idle";
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
    client.on("notification", (n) => this.#publish(n.payload ?? ""));
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
  get listens(): boolean {
    return this.#state === "listening";
  }

  /** Whether the connection is open, so that it could listen. */
  get connected(): boolean {
    return this.#connected;
  }

  /**
   * Calls `subscriber` with every notification while something needs the listener. Returns a function that unsubscribes.
   */
  on(subscriber: Subscriber): () => void {
    this.#subscribers.add(subscriber);
    return () => this.#subscribers.delete(subscriber);
  }

  /**
   * Starts to listen, if it does not yet. Returns a function that ends the need; calling it twice is safe. lingers: the
   * next need is likely to come soon.
   */
  need({ lingers }: { readonly lingers: boolean }): () => void {
    this.#needs++;
    if (this.#linger !== null) clearTimeout(this.#linger);
    this.#linger = null;
    if (this.#state === "idle") void this.#follow();
    let needed = true;
    return () => {
      if (!needed) return;
      needed = false;
      if (--this.#needs === 0) this.#lingerOn(lingers ? LINGER_MS : 0);
    };
  }

  /** Calls `subscriber` only for this payload and for LISTENING. Returns a function that unsubscribes. */
  onPayload(payload: string, subscriber: () => void): () => void {
    const subscribers = this.#subscribersTo.get(payload) ?? new Set();
    this.#subscribersTo.set(payload, subscribers.add(subscriber));
    return () => {
      subscribers.delete(subscriber);
      if (subscribers.size === 0 && this.#subscribersTo.get(payload) === subscribers)
        this.#subscribersTo.delete(payload);
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#connected = false;
    this.#state = "idle";
    for (const timer of [this.#timer, this.#ping, this.#linger]) if (timer !== null) clearTimeout(timer);
    if (this.#client !== null) await part(this.#client);
  }

  #publish(payload: string): void {
    for (const subscriber of this.#subscribers) subscriber(payload);
    for (const subscriber of this.#subscribersTo.get(payload) ?? []) subscriber();
    if (payload !== LISTENING) return;
    for (const subscribers of this.#subscribersTo.values()) for (const subscriber of subscribers) subscriber();
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
    this.#state = wanted ? "listening" : "idle";
    if (wanted) this.#publish(LISTENING);
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
    const listened = this.listens;
    this.#client = null;
    this.#connected = false;
    this.#state = "idle";
    if (this.#ping !== null) clearTimeout(this.#ping);
    destroy(client);
    if (listened) this.#publish(DISCONNECTED);
    tellTrouble(this.#log, "the listening connection was lost; polling continues", e);
    const waitMs = this.#retryMs * (0.5 + Math.random() / 2);
    this.#retryMs = Math.min(this.#retryMs * 2, RETRY_MS_MAX);
    this.#timer = setTimeout(() => void this.start(), waitMs).unref();
  }
}
