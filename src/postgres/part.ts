import pg from "pg";
import { within } from "../core/within.js";

const GOODBYE_MS_MAX = 1_000;
const members = new WeakMap<pg.Pool, Set<pg.Client>>();

type Lent = (e: Error | undefined, client?: pg.PoolClient, release?: Release) => void;
type Release = (destroy?: boolean | Error) => void;

/** A pool of pg whose end also answers the calls that wait for a connection: pg's own never does. */
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
    // guard: the end of a pool answers its waiters -> test/client/close.test.ts: "close() rejects calls that wait for a connection as closed"
    /* guard:waiters */ for (const giveUp of this.#waiting) giveUp(); /* end */
    await end;
  }
}

function ended(): Error {
  return new Error("the pool was closed while a connection was waited for");
}

/**
 * A pool that endPool can end for certain. Its time limit is for opening a connection only: the pool's
 * own would also count the time that one waits in line for a connection to become free.
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
    // A server may let us in and throw us out in one breath, before whoever asked for it has his own listener.
    client.on("error", () => {});
    open.add(client);
  });
  pool.on("remove", (client) => void open.delete(client as unknown as pg.Client));
  // An idle connection that breaks is replaced by the pool; without a listener it would end the process.
  pool.on("error", () => {});
  members.set(pool, open);
  return pool;
}

/** Ends a pool. A handler that never gives its connection back, or a dead network, does not hold it up. */
export async function endPool(pool: pg.Pool): Promise<void> {
  await (pool instanceof Pool ? pool.stop() : within(pool.end(), GOODBYE_MS_MAX));
  for (const client of members.get(pool) ?? []) destroy(client);
}

/** Says goodbye on a connection, and does not wait for ever for the other side to hear it. */
export async function part(client: pg.Client): Promise<void> {
  await within(client.end(), GOODBYE_MS_MAX);
  destroy(client);
}

/** Ends a connection without waiting for the other side, who may not be there any more. */
export function destroy(client: object): void {
  const { connection } = client as { connection?: { stream?: { destroy(): void } } };
  connection?.stream?.destroy();
}
