import type pg from "pg";

type Hear = (ms: number) => void;

const listeners = new WeakMap<pg.Pool, Set<Hear>>();

/** Tells how long everybody waits for a connection of a pool of ours; returns how to stop it. */
export function onWait(pool: pg.Pool, hear: Hear): () => void {
  const heard = listeners.get(pool) ?? measured(pool);
  heard.add(hear);
  return () => void heard.delete(hear);
}

/** The pool asks itself for connections by the same function that others call. */
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
