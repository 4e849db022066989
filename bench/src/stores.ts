import type { Library } from "./adapter.js";
import type { Databases, Recipe } from "./databases.js";
import { treeCpuMs } from "./server/proc.js";
import { startRedis, type RedisServer } from "./server/redis.js";

/** Where one measurement keeps its tasks. */
export interface Place {
  readonly url: string;
  /** CPU time of the server so far; null: it is not ours, or there is no way to see it. */
  cpuMs(): number | null;
  /** Where its write-ahead log is; null: it has none. */
  walBytes(): Promise<number | null>;
  drop(): Promise<void>;
}

// Positions in the log, as a number of bytes.
const WAL = "select (pg_current_wal_insert_lsn() - '0/0'::pg_lsn)::float8 as n";

/** A database of its own for every measurement, on PostgreSQL; Redis is emptied and filled each time. */
export class Stores {
  readonly databases: Databases;
  readonly #postgresPid: number | null;
  #redis: Promise<RedisServer> | null = null;
  #redisVersion: string | null = null;

  constructor(databases: Databases, postgresPid: number | null) {
    this.databases = databases;
    this.#postgresPid = postgresPid;
  }

  /** Of the Redis that was used; null if none was. */
  get redisVersion(): string | null {
    return this.#redisVersion;
  }

  async place({ store }: Library, recipe: Recipe): Promise<Place> {
    return store === "redis" ? this.#onRedis(recipe) : this.#onPostgres(recipe);
  }

  /** Between workloads: what was filled for one is of no use to the next. */
  async forget(): Promise<void> {
    await this.databases.forget();
  }

  async close(): Promise<void> {
    const redis = await this.#redis?.catch(() => null);
    await redis?.stop();
  }

  async #onPostgres(recipe: Recipe): Promise<Place> {
    const copy = await this.databases.copyOf(recipe);
    const pid = this.#postgresPid;
    return {
      url: copy.url,
      cpuMs: () => (pid === null ? null : treeCpuMs(pid)),
      walBytes: async () => ((await copy.query(WAL))[0]?.["n"] as number | undefined) ?? null,
      drop: () => copy.drop(),
    };
  }

  /** Whoever installs itself on Redis empties it first. */
  async #onRedis(recipe: Recipe): Promise<Place> {
    this.#redis ??= startRedis();
    const redis = await this.#redis;
    this.#redisVersion = redis.about;
    await recipe.fill(redis.url);
    return {
      url: redis.url,
      cpuMs: () => treeCpuMs(redis.pid),
      walBytes: async () => null,
      drop: async () => {},
    };
  }
}
