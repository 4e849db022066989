import type pg from "pg";

/** A waiting job of pg-boss, as the input function receives it. */
export interface WaitingJob {
  readonly id: string;
  readonly data: unknown;
  readonly priority: number;
  /** Not before this time. */
  readonly startAfter: Date;
  readonly createdOn: Date;
  readonly singletonKey: string | null;
  readonly groupId: string | null;
  /** Attempts that pg-boss has started. Sluice counts from 1 again. */
  readonly attemptsUsed: number;
}

export interface Counts {
  readonly policy: string;
  readonly waiting: number;
  readonly active: number;
  readonly flows: number;
}

// A pass reads so many ids in order, so that a batch does not have to sort the whole queue.
const PASS_JOBS_MAX = 100_000;

/** The jobs of one pg-boss queue, and the statements on them. */
export class Source {
  readonly #client: pg.Client;
  readonly #queue: string;
  readonly #job: string;
  readonly #queues: string;

  constructor(
    client: pg.Client,
    { queue, pgBossSchema }: { readonly queue: string; readonly pgBossSchema: string },
  ) {
    this.#client = client;
    this.#queue = queue;
    this.#job = `${client.escapeIdentifier(pgBossSchema)}.job`;
    this.#queues = `${client.escapeIdentifier(pgBossSchema)}.queue`;
  }

  async counts(): Promise<Counts> {
    const { rows } = await this.#client.query<Counts>(
      `select coalesce(q.policy, 'standard') as policy,
         count(*) filter (where j.state < 'active' and not (j.blocked or j.blocking))::int as waiting,
         count(*) filter (where j.state = 'active')::int as active,
         count(*) filter (where j.state < 'active' and (j.blocked or j.blocking))::int as flows
       from ${this.#queues} q left join ${this.#job} j on j.name = q.name
       where q.name = $1 group by q.name, q.policy`,
      [this.#queue],
    );
    if (rows[0] === undefined) throw new Error(`pg-boss has no queue "${this.#queue}"`);
    return rows[0];
  }

  /** The database's clock, as text: a Date would lose its microseconds. */
  async now(): Promise<string> {
    const { rows } = await this.#client.query<{ now: string }>("select now()::text as now");
    return rows[0]!.now;
  }

  /** Oldest first. Under key_strict_fifo a job that waits for its retry is the first of its key. */
  async waiting(until: string): Promise<string[]> {
    const { rows } = await this.#client.query<{ id: string }>(
      `select id from ${this.#job}
       where name = $1 and state < 'active' and not (blocked or blocking) and created_on <= $2
       order by (policy = 'key_strict_fifo' and state = 'retry') is true desc, created_on, id limit $3`,
      [this.#queue, until, PASS_JOBS_MAX],
    );
    return rows.map(({ id }) => id);
  }

  /** Locks those that still wait, as a pg-boss worker does: one that a worker is taking is skipped. */
  async lock(ids: readonly string[]): Promise<WaitingJob[]> {
    const { rows } = await this.#client.query<WaitingJob>(
      `select j.id, j.data, j.priority, j.start_after as "startAfter", j.created_on as "createdOn",
         j.singleton_key as "singletonKey", j.group_id as "groupId",
         case when j.started_on is null then 0 else j.retry_count + 1 end as "attemptsUsed"
       from unnest($2::uuid[]) with ordinality u(id, n)
       join ${this.#job} j on j.name = $1 and j.id = u.id
       where j.state < 'active' and not (j.blocked or j.blocking)
       order by u.n for update of j skip locked`,
      [this.#queue, ids],
    );
    return rows;
  }

  async delete(ids: readonly string[]): Promise<void> {
    const { rowCount } = await this.#client.query(
      `delete from ${this.#job} where name = $1 and id = any ($2::uuid[])`,
      [this.#queue, ids],
    );
    if (rowCount !== ids.length) throw new Error(`deleted ${rowCount} of ${ids.length} jobs`);
  }
}
