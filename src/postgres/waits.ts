import type pg from "pg";

type Hear = (ms: number) => void;

const listeners = new WeakMap<pg.Pool, Set<Hear>>();

/** Reports every wait for a connection of one of our pools, in ms; returns a function that unsubscribes. */
export function onWait(pool: pg.Pool, hear: Hear): () => void {
  const heard = listeners.get(pool) ?? measured(pool);
  heard.add(hear);
  return () => void heard.delete(hear);
}

/** Replaces `connect`, because the pool itself requests connections through the function that callers use. */
function measured(pool: pg.Pool): Set<Hear> {
  const heard = new Set<Hear>();
  const connect = pool.connect.bind(pool) as (...args: unknown[]) => Promise<pg.PoolClient> | void;
  const tell = (since: number): void => {
    const ms = performance.now() - since;
    for (const hear of heard) hear(ms);
  };
  const timed = (done?: (...got: unknown[]) => void): Promise<pg.PoolClient> | void => {
    if (heard.size === 0) return done === undefined ? connect() : connect(done);
    const since = performance.now();
    if (done !== undefined) {
      return connect((...got: unknown[]) => {
        tell(since);
        done(...got);
      });
    }
    return connect()!.finally(() => tell(since));
  };
  pool.connect = timed as pg.Pool["connect"];
  listeners.set(pool, heard);
  return heard;
}
