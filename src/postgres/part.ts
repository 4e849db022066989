import pg from "pg";
import { within } from "../core/within.js";

const GOODBYE_MS_MAX = 1_000;
const members = new WeakMap<pg.Pool, Set<pg.Client>>();

type Lent = (e: Error | undefined, client?: pg.PoolClient, release?: Release) => void;
type Release = (destroy?: boolean | Error) => void;

/** A pg pool whose end also rejects the calls that wait for a connection, which pg's own pool never does. */
class Pool extends pg.Pool {
  readonly #waiting = new Set<() => void>();

  override connect(): Promise<pg.PoolClient>;
  override connect(lent: Lent): void;
  override connect(lent?: Lent): Promise<pg.PoolClient> | void {
    if (lent !== undefined) return this.#wait(lent);
    return new Promise((resolve, reject) =>
      this.#wait((e, client) => (client === undefined ? reject(e!) : resolve(client))),
    );
  }

  #wait(lent: Lent): void {
    const giveUp = (): void => {
      if (this.#waiting.delete(giveUp)) lent(ended());
    };
    this.#waiting.add(giveUp);
    super.connect((e, client, release) => {
      if (this.#waiting.delete(giveUp)) lent(e, client, release);
      else release();
    });
  }

  async stop(): Promise<void> {
    const end = within(this.end(), GOODBYE_MS_MAX);
    // guard: the end of a pool answers its waiters -> test/client/close.test.ts: "close() rejects calls that wait for a connection with the code closed"
    /* guard:waiters */ for (const giveUp of this.#waiting) giveUp(); /* end */
    await end;
  }
}

function ended(): Error {
  return new Error("the pool was closed while waiting for a connection");
}

/**
 * A pool that endPool reliably ends. Its timeout covers only opening a connection: the timeout of pg's pool also counts
 * the time spent waiting for a connection to become free.
 */
export function openPool({ connectionTimeoutMillis, ...config }: pg.PoolConfig): pg.Pool {
  class Client extends pg.Client {
    constructor() {
      super({ ...config, connectionTimeoutMillis });
    }
  }
  const pool = new Pool({ ...config, Client });
  const open = new Set<pg.Client>();
  pool.on("connect", (client) => {
    // A server may accept and drop a connection at once, before the caller has attached a listener of its own.
    client.on("error", () => {});
    open.add(client);
  });
  pool.on("remove", (client) => void open.delete(client as unknown as pg.Client));
  // The pool replaces an idle connection that breaks. Without a listener, the error would end the process.
  pool.on("error", () => {});
  members.set(pool, open);
  return pool;
}

/** Ends a pool. Neither a handler that never returns its connection nor a dead network holds it up. */
export async function endPool(pool: pg.Pool): Promise<void> {
  await (pool instanceof Pool ? pool.stop() : within(pool.end(), GOODBYE_MS_MAX));
  for (const client of members.get(pool) ?? []) destroy(client);
}

/** Ends a connection gracefully, with a bounded wait for the server. */
export async function part(client: pg.Client): Promise<void> {
  await within(client.end(), GOODBYE_MS_MAX);
  destroy(client);
}

/** Ends a connection without waiting for the server, which may be gone. */
export function destroy(client: object): void {
  const { connection } = client as { connection?: { stream?: { destroy(): void } } };
  connection?.stream?.destroy();
}
