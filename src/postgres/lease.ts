import type pg from "pg";
import { inSchema } from "./statement.js";

/** How long a migrator outside a transaction holds its lease, and how long the others pause between polls. */
export interface LeaseTiming {
  readonly leaseMs: number;
  readonly pollMs: number;
}

/**
 * The lease of the migrator that works outside transactions. It is a row with an expiry time: a transaction lock would
 * need a transaction around the migration, a session lock is lost in a pooler, and a session that waits for a lock has
 * a snapshot, which CREATE INDEX CONCURRENTLY waits for in turn.
 */
export class Lease {
  readonly #schema: string;
  readonly #holder: string;
  readonly #leaseMs: number;

  constructor(schema: string, holder: string, leaseMs: number) {
    this.#schema = schema;
    this.#holder = holder;
    this.#leaseMs = leaseMs;
  }

  /** False: another migrator holds the lease, and it has not expired. */
  async take(client: pg.ClientBase): Promise<boolean> {
    return this.#update(client, TAKE, [this.#holder, this.#leaseMs]);
  }

  /** Restarts the term. */
  async renew(client: pg.ClientBase): Promise<boolean> {
    return this.#update(client, RENEW, [this.#holder, this.#leaseMs]);
  }

  async release(client: pg.ClientBase): Promise<void> {
    await this.#update(client, RELEASE, [this.#holder]);
  }

  /**
   * After waiting for the row, the update must see what the other migrator wrote, whatever isolation level the role
   * has.
   */
  async #update(client: pg.ClientBase, text: string, values: unknown[]): Promise<boolean> {
    await client.query("begin isolation level read committed");
    try {
      const { rowCount } = await client.query(inSchema(text, this.#schema), values);
      await client.query("commit");
      return rowCount === 1;
    } catch (e) {
      await client.query("rollback").catch(() => {});
      throw e;
    }
  }
}

// guard: one at a time migrates outside transactions -> test/postgres/outside.test.ts: "one of two concurrent migrators runs a migration outside a transaction"
const TAKE = `
  update sluice.migrator set holder = $1, expires_at = clock_timestamp() + $2::int * interval '1 ms'
  where ${/* guard:lease */ "holder is null or expires_at < clock_timestamp()" /* end */}`;

const RENEW = `
  update sluice.migrator set expires_at = clock_timestamp() + $2::int * interval '1 ms' where holder = $1`;

const RELEASE = "update sluice.migrator set holder = null, expires_at = null where holder = $1";
