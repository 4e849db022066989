// What a caller of `enqueueWith` does beside the task, the same for every library on PostgreSQL.
import pg from "pg";

const TABLE = "create table if not exists bench_own (n int not null)";
const INSERT = "insert into bench_own (n) values ($1)";
// As many as there are clients, so that none waits for a connection.
const CONNECTIONS = 8;

export async function makeCallersTable(url: string): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(TABLE);
  } finally {
    await client.end();
  }
}

/** Connections of a caller who enqueues in transactions of his own. */
export class Caller {
  readonly #pool: pg.Pool;

  constructor(url: string) {
    this.#pool = new pg.Pool({ connectionString: url, max: CONNECTIONS });
    // A connection that breaks is told by the next query; without a listener it would end the process.
    this.#pool.on("error", () => {});
  }

  /** One row of his own and what `enqueue` does, committed together. */
  async with(n: number, enqueue: (tx: pg.PoolClient) => Promise<unknown>): Promise<void> {
    const tx = await this.#pool.connect();
    let failed: Error | undefined;
    try {
      await tx.query("begin");
      await tx.query(INSERT, [n]);
      await enqueue(tx);
      await tx.query("commit");
    } catch (e) {
      failed = e as Error;
      throw e;
    } finally {
      // With an error the connection is ended, and its transaction with it.
      tx.release(failed);
    }
  }

  query(text: string, values: unknown[]): Promise<unknown> {
    return this.#pool.query(text, values);
  }

  close(): Promise<void> {
    return this.#pool.end();
  }
}
