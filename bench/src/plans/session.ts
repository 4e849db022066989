import pg from "pg";

/** What was claimed by one call. */
export interface Hand {
  readonly ids: readonly string[];
  readonly token: string;
}

/** What a call asks for. */
export interface Ask {
  readonly streams: readonly number[];
  readonly claim: number;
  readonly settle?: Hand;
}

// Nobody renews it; a scenario takes a minute.
const LEASE_MS = 3_600_000;
const CAPACITY = 1_000;

// The call of the worker: it settles and claims in one statement, and looks everywhere.
const STEP = `select id::text as id, stream, attempt, input, holds, trace, passed, nonce, report from sluice.step(
  p_worker => $1, p_claim => $2, p_streams => $3::int[], p_n => $4,
  p_ids => $5::bigint[], p_claims => $6::bigint[], p_spots => '{}') where id is not null`;

/** A session that claims as a worker does, one call at a time, and takes everything back. */
export class PlanSession {
  readonly client: pg.Client;
  readonly #worker: string;
  readonly #streams: ReadonlyMap<string, number>;

  private constructor(client: pg.Client, worker: string, streams: ReadonlyMap<string, number>) {
    this.client = client;
    this.#worker = worker;
    this.#streams = streams;
  }

  static async open(url: string): Promise<PlanSession> {
    const client = new pg.Client({ connectionString: url });
    // A connection that breaks is told by the next query; without a listener it would end the process.
    client.on("error", () => {});
    await client.connect();
    const streams = await streamsOf(client);
    const { rows } = await client.query<{ id: string }>(
      "select sluice.register('plans', $1::int[], $2, $3)::text as id",
      [[...streams.values()], LEASE_MS, CAPACITY],
    );
    return new PlanSession(client, rows[0]!.id, streams);
  }

  close(): Promise<void> {
    return this.client.end();
  }

  /** Of these types; of all, if none is named. */
  streams(types: readonly string[] = []): number[] {
    return types.length === 0 ? [...this.#streams.values()] : types.map((type) => this.#streams.get(type)!);
  }

  /** Work of which nothing stays: every call finds the same. */
  async undone<T>(work: () => Promise<T>): Promise<T> {
    await this.client.query("begin");
    try {
      return await work();
    } finally {
      await this.client.query("rollback");
    }
  }

  async step(ask: Ask): Promise<Hand> {
    const { text, values, token } = this.call(ask);
    const { rows } = await this.client.query<{ id: string }>({ name: "step", text, values });
    return { ids: rows.map(({ id }) => id), token };
  }

  /** Claims until nothing more comes: every slot of these streams is taken. */
  async exhaust(streams: readonly number[]): Promise<void> {
    for (let calls = 0; calls < CALLS_MAX; calls++)
      if ((await this.step({ streams, claim: 50 })).ids.length === 0) return;
    throw new Error(`slots were still free after ${CALLS_MAX} claims`);
  }

  call({ streams, claim, settle }: Ask): {
    readonly text: string;
    readonly values: unknown[];
    readonly token: string;
  } {
    const token = String(Math.floor(Math.random() * Number.MAX_SAFE_INTEGER));
    const tokens = settle?.ids.map(() => settle.token) ?? null;
    const values = [this.#worker, token, streams, claim, settle?.ids ?? null, tokens];
    return { text: STEP, values, token };
  }
}

const CALLS_MAX = 1_000;

async function streamsOf(client: pg.Client): Promise<Map<string, number>> {
  const { rows } = await client.query<{ id: number; type: string }>("select id, type from sluice.stream order by id");
  return new Map(rows.map(({ id, type }) => [type, id]));
}
