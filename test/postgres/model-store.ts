import type pg from "pg";
import { CLEAR } from "../support/sql.js";
import { DECLARED, TICK, type Kind, type Limit, type Place, type Stream, type Task } from "./model-terms.js";

const STREAM = { bounded: 1, free: 2 } as const;
const LIMIT_ID = { tenant: 1, mail: 2, bulk: 3 } as const;
const NO_LIMIT = 2_147_483_647;

/** A reason, as far as a claim can show that it is right. */
export interface Explained {
  readonly kind: string;
  readonly before?: number | null;
}

/** The store, driven by the same commands as the model. */
export class Store {
  readonly #client: pg.Client;
  #worker = "";
  #streams: readonly Stream[] = ["bounded", "free"];
  #tokens = 1;
  #ticks = 0;
  readonly #token = new Map<number, string>();

  /** Whether explain is asked before each claim. */
  readonly explains: boolean;

  constructor(client: pg.Client, explains: boolean) {
    this.#client = client;
    this.explains = explains;
  }

  async open(): Promise<void> {
    await this.#client.query(CLEAR);
    // Time stands still: what the keeper does after a while it does in no run or in all.
    await this.#client.query(
      "create or replace function sluice.clock() returns timestamptz language sql volatile as $$ select timestamptz '2030-01-01' $$",
    );
    await this.#client.query(
      `select sluice.declare_limit('tenant', null, ${DECLARED.tenant}), sluice.declare_limit('mail', ${DECLARED.mail}, null),
        sluice.declare_limit('bulk', ${NO_LIMIT}, null)`,
    );
    await this.#declare("bounded", DECLARED.bounded);
    await this.#declare("free", null);
    await this.#rows(
      `select sluice.set_schedule('tick', null, '', $1, '{}', null, null, 3600000, 'all', $2, $3, $4, $5, '{tenant}', $6, true,
        sluice.clock() - interval '1 hour')`,
      [STREAM[TICK.stream], TICK.priority, TICK.attempts, TICK.order, TICK.blocks, [TICK.tenant]],
    );
    await this.#register();
  }

  async enqueue(p: Place): Promise<void> {
    const limits = [...(p.tenant === null ? [] : [1]), ...p.totals.map((total) => LIMIT_ID[total])];
    await this.#rows(
      `select sluice.enqueue_many($1, $2, $3, '{}', $4, $5, $6, $7, sluice.clock() + $8 * interval '1 hour', $9)`,
      [
        STREAM[p.stream],
        p.priority,
        p.attempts,
        limits.length === 0 ? null : limits,
        p.tenant,
        p.order,
        p.blocks,
        p.later ? 1 : null,
        p.key,
      ],
    );
  }

  async step(done: readonly Task[], n: number): Promise<number[]> {
    const token = String(this.#tokens++);
    const found = await this.#rows("select id from sluice.step($1, $2, $3, $4, $5, $6)", [
      this.#worker,
      token,
      this.#streams.map((stream) => STREAM[stream]),
      n,
      done.length === 0 ? null : done.map((t) => t.id),
      done.length === 0 ? null : done.map((t) => this.#token.get(t.id)),
    ]);
    const ids = found.map(([id]) => Number(id)).toSorted((a, b) => a - b);
    for (const id of ids) this.#token.set(id, token);
    return ids;
  }

  async settle(t: Task, kind: Kind, later: boolean): Promise<void> {
    const values = [this.#worker, [t.id], [this.#token.get(t.id)], [kind]];
    await this.#rows("select sluice.settle($1, $2, $3, $4, $5, null)", [...values, [later ? 3_600_000 : 0]]);
    if (kind === "release") await this.keep();
  }

  /** Completes a task in a transaction of the user's, which commits or not. */
  async complete(t: Task, commits: boolean): Promise<void> {
    await this.#client.query("begin");
    const values = [this.#worker, t.id, this.#token.get(t.id)];
    await this.#rows("select sluice.settle_in_transaction($1, $2, $3, null, true)", values);
    await this.#client.query(commits ? "commit" : "rollback");
  }

  /** Hands back what is held under other claims than those of these. */
  async releaseUnknown(known: readonly Task[]): Promise<void> {
    const tokens = known.map((t) => this.#token.get(t.id));
    await this.#rows("select sluice.release_unknown($1, $2)", [this.#worker, tokens]);
    await this.keep();
  }

  async cancel(t: Task): Promise<void> {
    await this.#rows("select answer from sluice.cancel($1)", [[t.id]]);
  }

  async retry(t: Task): Promise<void> {
    await this.#rows("select sluice.retry($1)", [t.id]);
  }

  async unblock(t: Task): Promise<void> {
    await this.#rows("select sluice.unblock($1)", [t.id]);
  }

  async due(hour: boolean): Promise<void> {
    if (hour) await this.#rows("update sluice.scheduled set run_at = run_at - interval '61 minutes'");
    await this.#rows("select sluice.due(1000)");
  }

  /** A tick of the schedule: a new one, the last one again, or one for an outdated schedule. */
  async tick(how: "new" | "again" | "stale"): Promise<void> {
    if (how === "new") this.#ticks++;
    if (this.#ticks === 0) return;
    const at = how === "stale" ? this.#ticks + 1 : this.#ticks;
    const time = `2020-01-01T00:00:00.${String(at).padStart(3, "0")}Z`;
    await this.#rows(
      `select answer from sluice.schedule s cross join lateral
        sluice.fire_schedule('tick', s.revision - $1, array[$2], sluice.clock() - interval '1 minute', '?') f`,
      [how === "stale" ? 1 : 0, time],
    );
  }

  async crash(): Promise<void> {
    await this.#rows("update sluice.worker set expires_at = sluice.clock() - interval '1 second'");
    await this.#rows("select tasks from sluice.reap()");
    await this.#register();
    await this.keep();
  }

  async serve(streams: readonly Stream[]): Promise<void> {
    await this.#rows("select sluice.retire($1)", [this.#worker]);
    this.#streams = streams;
    await this.#register();
    await this.keep();
  }

  /** Claims a suspect if one is kept for us. */
  async suspect(): Promise<number | null> {
    const [[kept] = []] = await this.#rows("select suspect from sluice.beat($1, 100, 0, false)", [this.#worker]);
    if (kept === null) return null;
    const token = String(this.#tokens++);
    const found = await this.#rows("select id from sluice.claim_suspect($1, $2, $3)", [this.#worker, token, kept]);
    const id = found[0] === undefined ? null : Number(found[0][0]);
    if (id !== null) this.#token.set(id, token);
    return id;
  }

  async set(limit: Limit, n: number | null): Promise<void> {
    const number = n ?? -1;
    const values = limit === "tenant" ? [limit, null, number] : [limit, number, null];
    await this.#rows("select sluice.set_limit($1, $2, $3)", values);
    await this.keep();
  }

  async declare(stream: Stream, number: number | null): Promise<void> {
    await this.#declare(stream, number);
  }

  async fill(number: number): Promise<void> {
    await this.#rows("select sluice.fill_limit($1, $2)", [LIMIT_ID.bulk, number]);
  }

  async pause(paused: boolean): Promise<void> {
    await this.#rows("select sluice.pause_queue('default', $1)", [paused]);
  }

  async keep(): Promise<void> {
    await this.#rows("select sluice.keep_lanes(1000)");
  }

  async look(): Promise<{ violations: unknown; tasks: [number, string, number][] }> {
    const [[violations, tasks] = []] = await this.#rows(
      `select (select json_agg(v) from sluice.violation v),
        (select json_agg(json_build_array(id, state, attempt) order by id) from sluice.task_state)`,
    );
    return { violations, tasks: (tasks ?? []) as [number, string, number][] };
  }

  /** What explain says of each task that has not ended and does not run: its reasons by id. */
  async explain(): Promise<Map<number, readonly Explained[]>> {
    const rows = await this.#rows(
      `select id, sluice.explain(id) -> 'reasons' from sluice.task_state where state in ('scheduled', 'waiting', 'ready')`,
    );
    return new Map(rows.map(([id, reasons]) => [Number(id), reasons as Explained[]]));
  }

  async #declare(stream: Stream, number: number | null): Promise<void> {
    await this.#rows("select sluice.declare_contract($1, 'default', 0, 25, false, null, false, '{1,2,3}', $2, true)", [
      stream,
      number,
    ]);
  }

  async #register(): Promise<void> {
    const streams = this.#streams.map((stream) => STREAM[stream]);
    const [[id] = []] = await this.#rows("select sluice.register('w', $1, 3600000, 100)", [streams]);
    this.#worker = id as string;
  }

  async #rows(text: string, values: unknown[] = []): Promise<unknown[][]> {
    // Named, so that each text is planned once.
    const query = { name: text.slice(0, 60), text, values, rowMode: "array" as const };
    return (await this.#client.query(query)).rows as unknown[][];
  }
}
