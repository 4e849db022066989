// The demo's own log, in a schema of its own: what handlers, producer and operator saw, by the
// database's clock. Nothing here asks the queue, and the audit reads nothing but this.
import pg from "pg";
import type { Queryable } from "../../src/index.js";
import type { Entry, Line } from "./audit.js";

const CREATE = `create table log.entry (
  n bigint generated always as identity, at timestamptz not null default clock_timestamp(),
  kind text not null, worker text, task text, claim text, attempt int, type text, tenant text,
  order_key text, place int, limits text[], recorded boolean, slots int)`;

const INSERT = `insert into log.entry
  (kind, worker, task, claim, attempt, type, tenant, order_key, place, limits, recorded, slots)
  select kind, worker, task, claim, attempt, type, tenant, order_key, place, limits, recorded, slots
  from json_populate_recordset(null::log.entry, $1)`;

const READ = `select extract(epoch from at)::float8 * 1000 as at, kind, worker, task, claim, attempt,
  type, tenant, order_key, place, limits, recorded, slots from log.entry order by at, n`;

// A run without an end is under way, unless its worker is dead.
const LOOK = `select worker, type, tenant, count(*) filter (where ended)::int as done,
    count(*) filter (where not ended and worker <> all (array(select worker from log.entry where kind = 'dead')))::int as running
  from (select worker, type, tenant, bool_or(kind = 'end') as ended, bool_or(kind = 'left') as gone
    from log.entry where kind in ('start', 'end', 'left') group by worker, type, tenant, task, claim) run
  where ended or not gone group by worker, type, tenant`;

/** How many runs of a worker, type and tenant have ended and are under way. */
export interface Tally {
  readonly worker: string;
  readonly type: string;
  readonly tenant: string | null;
  readonly done: number;
  readonly running: number;
}

/** The log, on one connection of its own for each process. */
export class Log {
  readonly #pool: pg.Pool;
  readonly #schema: string;

  private constructor(pool: pg.Pool, schema: string) {
    this.#pool = pool;
    this.#schema = schema;
  }

  static open(url: string, schema: string): Log {
    // Nobody waits for the disk on behalf of a log that is dropped at the end.
    const options = "-c synchronous_commit=off";
    const pool = new pg.Pool({ connectionString: url, max: 1, options });
    // A broken connection makes the next query fail; unheard, the event would end the process.
    pool.on("error", () => {});
    return new Log(pool, schema);
  }

  async create(): Promise<void> {
    await this.#pool.query(`create schema "${this.#schema}"`);
    await this.#pool.query(this.#in(CREATE));
  }

  /** Appends entries, all with one statement. */
  async write(entries: readonly Entry[]): Promise<void> {
    const values = [JSON.stringify(entries)];
    await this.#pool.query({ name: "write", text: this.#in(INSERT), values });
  }

  /** The same within a handler's transaction. */
  async writeWithin(tx: Queryable, entries: readonly Entry[]): Promise<void> {
    await tx.query(this.#in(INSERT), [JSON.stringify(entries)]);
  }

  async read(): Promise<Line[]> {
    return (await this.#pool.query<Line>(this.#in(READ))).rows;
  }

  async look(): Promise<Tally[]> {
    return (await this.#pool.query<Tally>(this.#in(LOOK))).rows;
  }

  async drop(schema: string): Promise<void> {
    await this.#pool.query(`drop schema if exists "${schema}" cascade`);
  }

  async exists(schema: string): Promise<boolean> {
    const found = "select from pg_namespace where nspname = $1";
    return (await this.#pool.query(found, [schema])).rowCount === 1;
  }

  async serverVersion(): Promise<string> {
    const { rows } = await this.#pool.query<{ server_version: string }>("show server_version");
    return rows[0]!.server_version.split(" ")[0]!;
  }

  close(): Promise<void> {
    return this.#pool.end();
  }

  #in(text: string): string {
    return text.replaceAll("log.", `"${this.#schema}".`);
  }
}
