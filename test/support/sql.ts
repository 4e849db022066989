import pg from "pg";
import { afterAll } from "vitest";
import { freshDatabase, type TestDatabase } from "./database.js";

/** A claimed task: what a settle must name. */
export interface Held {
  readonly id: number;
  readonly token: string;
  readonly attempt: number;
  readonly stream: number;
}

export interface TestWorker {
  readonly id: string;
  readonly streams: readonly number[];
}

export interface Shape {
  readonly total?: number | undefined;
  readonly perKey?: number | undefined;
}

export interface TypeTerms {
  readonly queue?: string;
  readonly attempts?: number;
  readonly limits?: readonly number[];
  readonly concurrency?: number;
  readonly sync?: boolean;
}

/** n tasks that share everything. */
export interface Batch {
  readonly n?: number;
  readonly priority?: number;
  readonly attempts?: number;
  readonly limits?: readonly number[];
  /** One for each limit that is per key. */
  readonly keys?: readonly string[];
  readonly order?: string;
  readonly blocks?: boolean;
  readonly delayMs?: number;
}

export type Kind = "retry" | "fail" | "cancel" | "snooze" | "release";

const owners = new WeakMap<Promise<unknown>, Session>();
const ASKING_MS_MAX = 20_000;
// Every sixteenth claim leaves no slot to a rival: which one must not depend on what ran before.
const TOKEN_STEP = 16;
let tokens = 1_000;

/**
 * One connection, taking one step of a schedule after the other. Whatever it returns is known to
 * `blocked`, so none of its verbs is an async function: that would hand out another promise.
 */
export class Session {
  readonly #client: pg.Client;
  readonly pid: number;

  constructor(client: pg.Client, pid: number) {
    this.#client = client;
    this.pid = pid;
  }

  rows<Row extends object = Record<string, unknown>>(text: string, values: unknown[] = []): Promise<Row[]> {
    return this.#own(this.#client.query<Row>(text, values).then((r) => r.rows));
  }

  /** The one value of the one row. */
  value<T = unknown>(text: string, values: unknown[] = []): Promise<T> {
    const query = this.#client.query({ text, values, rowMode: "array" });
    return this.#own(query.then((r) => (r.rows as unknown[][])[0]?.[0] as T));
  }

  /** Statements without values, several at once. */
  script(text: string): Promise<unknown> {
    return this.#own(this.#client.query(text));
  }

  /** Listens; the answer gives what was notified since it was last asked. */
  async ear(): Promise<() => Promise<string[]>> {
    const heard: string[] = [];
    this.#client.on("notification", ({ payload = "" }) => void heard.push(payload));
    await this.rows("listen sluice");
    return async () => {
      // All earlier notifications have arrived when a statement is answered.
      await this.rows("select");
      return heard.splice(0);
    };
  }

  begin(isolation = "read committed"): Promise<unknown> {
    return this.rows(`begin isolation level ${isolation}`);
  }

  commit(): Promise<unknown> {
    return this.rows("commit");
  }

  rollback(): Promise<unknown> {
    return this.rows("rollback");
  }

  limit(name: string, shape: Shape, sync = false): Promise<number> {
    const values = [name, shape.total ?? null, shape.perKey ?? null, sync];
    return this.value("select sluice.declare_limit($1, $2, $3, $4)", values);
  }

  /** Declares a type; the answer is its stream. */
  type(type: string, t: TypeTerms = {}): Promise<number> {
    return this.value("select sluice.declare_contract($1, $2, 0, $3, false, null, false, $4, $5, $6)", [
      type,
      t.queue ?? "default",
      t.attempts ?? 25,
      t.limits ?? [],
      t.concurrency ?? null,
      t.sync ?? false,
    ]);
  }

  register(streams: readonly number[], capacity = 100, leaseMs = 60_000): Promise<TestWorker> {
    const id = this.value<string>("select sluice.register('tester', $1, $2, $3)", [streams, leaseMs, capacity]);
    return this.#own(id.then((x) => ({ id: x, streams })));
  }

  beat(worker: TestWorker, available: number, draining = false): Promise<boolean> {
    const values = [worker.id, available, draining];
    return this.value("select alive from sluice.beat($1, $2, 0, $3)", values);
  }

  enqueue(stream: number, b: Batch = {}): Promise<number[]> {
    const n = b.n ?? 1;
    const each = (text: string | undefined): string | null =>
      text === undefined ? null : Array.from({ length: n }, () => text).join("\u001e");
    const ids = this.value<string>(
      `select ids::text from sluice.enqueue_many($1, $2, $3, $4, $5, $6, $7, $8,
        sluice.clock() + $9 * interval '1 millisecond')`,
      [
        stream,
        b.priority ?? 0,
        b.attempts ?? 25,
        each("{}"),
        b.limits ?? null,
        each(b.keys?.join("\u001f")),
        each(b.order),
        b.blocks ?? false,
        b.delayMs ?? null,
      ],
    );
    return this.#own(ids.then(numbers));
  }

  claim(worker: TestWorker, n: number): Promise<Held[]> {
    return this.#own(this.step(worker, n, []).then((r) => r.held));
  }

  /** Settles what succeeded and claims n more. */
  step(
    worker: TestWorker,
    n: number,
    done: readonly Pick<Held, "id" | "token">[],
  ): Promise<{ held: Held[]; refused: number }> {
    const token = String((tokens += TOKEN_STEP));
    const rows = this.rows<{ id: string | null; stream: number; attempt: number; report: { refused?: number } | null }>(
      "select id, stream, attempt, report from sluice.step($1, $2, $3, $4, $5, $6)",
      [worker.id, token, worker.streams, n, ...settling(done)],
    );
    return this.#own(
      rows.then((all) => ({
        held: all
          .filter((r) => r.id !== null)
          .map(({ id, stream, attempt }) => ({ id: Number(id), stream, attempt, token }))
          .toSorted((x, y) => x.id - y.id),
        refused: all.reduce((sum, { report }) => sum + (report?.refused ?? 0), 0),
      })),
    );
  }

  /** Any other outcome; the answer is the ids that were still ours. */
  settle(worker: TestWorker, kind: Kind, held: readonly Pick<Held, "id" | "token">[], delayMs = 0): Promise<number[]> {
    const ids = this.value<string | null>("select sluice.settle($1, $2, $3, $4, $5, null)::text", [
      worker.id,
      held.map((h) => h.id),
      held.map((h) => h.token),
      held.map(() => kind),
      held.map(() => delayMs),
    ]);
    return this.#own(ids.then(numbers));
  }

  settleInTransaction(worker: TestWorker, held: Held): Promise<boolean> {
    const values = [worker.id, held.id, held.token];
    return this.value("select sluice.settle_in_transaction($1, $2, $3, null, true)", values);
  }

  /** -1 goes back to the declared number. */
  setLimit(name: string, shape: Shape): Promise<unknown> {
    const values = [name, shape.total ?? null, shape.perKey ?? null];
    return this.value("select sluice.set_limit($1, $2, $3)", values);
  }

  cancel(ids: readonly number[]): Promise<string[]> {
    const rows = this.rows<{ answer: string }>("select answer from sluice.cancel($1)", [ids]);
    return this.#own(rows.then((all) => all.map((r) => r.answer)));
  }

  releaseUnknown(worker: TestWorker, known: readonly string[]): Promise<number> {
    return this.value("select sluice.release_unknown($1, $2)", [worker.id, known]);
  }

  reap(): Promise<number> {
    return this.value("select tasks from sluice.reap()");
  }

  due(): Promise<number> {
    return this.value("select moved from sluice.due(1000)");
  }

  /** What the keeper does for lanes, of its own accord. */
  keep(): Promise<number> {
    return this.value("select sluice.keep_lanes(1000)");
  }

  /** Looks at every note, as a step that claims nothing would. */
  admit(): Promise<number> {
    return this.value("select sluice.admit_dirty(1000)");
  }

  end(): Promise<void> {
    return this.#client.end();
  }

  #own<T>(work: Promise<T>): Promise<T> {
    owners.set(work, this);
    return work;
  }
}

/** A migrated database without a task in it, and as many sessions as a schedule has parties. */
export class Scene {
  readonly #stage: Stage;
  readonly #sessions: Session[] = [];
  #changed = false;

  private constructor(stage: Stage) {
    this.#stage = stage;
  }

  /** prepare: what the schedule must find changed in the functions of the schema. */
  static async open(prepare?: (watcher: Session) => Promise<void>): Promise<Scene> {
    const scene = new Scene(await lend());
    scene.#changed = prepare !== undefined;
    await prepare?.(scene.#stage.watcher);
    return scene;
  }

  get #watcher(): Session {
    return this.#stage.watcher;
  }

  async sessions(n: number): Promise<Session[] & Record<0 | 1 | 2 | 3 | 4, Session>> {
    const fresh = await Promise.all(Array.from({ length: n }, () => connect(this.#stage.database.url)));
    this.#sessions.push(...fresh);
    return fresh as Session[] & Record<0 | 1 | 2 | 3 | 4, Session>;
  }

  /**
   * Whether the work waits for a lock, or has ended. Asks the server whether another session blocks its
   * backend, twice, so that a lock of a moment does not count.
   */
  async blocked(work: Promise<unknown>, session = owners.get(work)): Promise<boolean> {
    if (session === undefined) throw new Error("blocked() wants what a session has returned");
    let over = false;
    const settled = (): void => void (over = true);
    work.then(settled, settled);
    const end = performance.now() + ASKING_MS_MAX;
    for (let seen = 0; performance.now() < end;) {
      const waits = await this.#watcher.value<boolean>(
        // Client backends only: a vacuum does not count.
        "select exists (select from pg_stat_activity where pid = any (pg_blocking_pids($1)) and backend_type = 'client backend')",
        [session.pid],
      );
      seen = waits ? seen + 1 : 0;
      if (over) return false;
      if (seen === 2) return true;
    }
    throw new Error(`session ${session.pid} neither waits nor comes to an end`);
  }

  /** Ends a session from outside, as a cut cable would. */
  async cut(session: Session): Promise<void> {
    await this.#watcher.value("select pg_terminate_backend($1, 5000)", [session.pid]);
  }

  async violations(): Promise<string[]> {
    const rows = await this.#watcher.rows<{ what: string }>("select what from sluice.violation order by what");
    return rows.map((r) => r.what);
  }

  async running(): Promise<number[]> {
    const ids = await this.#watcher.value<string>(
      "select coalesce(array_agg(id order by id), '{}')::text from sluice.running",
    );
    return numbers(ids);
  }

  async state(id: number): Promise<string | undefined> {
    return this.#watcher.value("select state from sluice.task_state where id = $1", [id]);
  }

  /** Moves the clock that leases and schedules are read from. */
  async moveClock(ms: number): Promise<void> {
    this.#changed = true;
    await this.#watcher.rows(
      `create or replace function sluice.clock() returns timestamptz language sql volatile as
        $$ select clock_timestamp() + ${Math.round(ms)} * interval '1 millisecond' $$`,
    );
  }

  /** Stops that clock this many milliseconds after a fixed moment, so that no step takes any time. */
  async stopClock(ms = 0): Promise<void> {
    await this.replace(
      `create or replace function sluice.clock() returns timestamptz language sql volatile as
        $$ select timestamptz '2030-01-01' + ${Math.round(ms)} * interval '1 millisecond' $$`,
    );
  }

  /** Puts another function in the place of one, until the scene is closed. */
  async replace(text: string): Promise<void> {
    this.#changed = true;
    await this.#watcher.script(text);
  }

  /** Starts over with the same sessions, none of which may be in a transaction. */
  async clear(): Promise<void> {
    await this.#watcher.script(CLEAR);
  }

  async close(): Promise<void> {
    await Promise.all(this.#sessions.map((s) => s.end().catch(() => {})));
    if (this.#changed) await this.#watcher.script(this.#stage.functions);
    await this.#watcher.script(`${this.#stage.settings}; ${CLEAR}`);
    idle.push(this.#stage);
  }
}

interface Stage {
  readonly database: TestDatabase;
  readonly watcher: Session;
  /** Put every function and every setting back to what the migrations made. */
  readonly functions: string;
  readonly settings: string;
}

/**
 * For sessions whose data is thrown away. A look at sluice.violation over twenty tasks takes 0.3 ms; to
 * compile it (where the server can) takes 80, to start parallel workers for it 6.
 */
export const QUICK = "set synchronous_commit = off; set jit = off; set max_parallel_workers_per_gather = 0";

/** Empties every table and restarts every sequence. */
export const CLEAR = `do $$
  declare statement text;
  begin
    for statement in select format('delete from sluice.%I', tablename) from pg_tables
      where schemaname = 'sluice' and tablename not in ('setting', 'migration', 'compatibility', 'installed')
      union all select format('alter sequence sluice.%I restart', sequencename) from pg_sequences where schemaname = 'sluice'
    loop execute statement; end loop;
    insert into sluice.pulse default values;
  end $$`;

// To make a database takes ten times as long as to clear one, and there are a hundred schedules.
const idle: Stage[] = [];
const all: Stage[] = [];

afterAll(async () => {
  idle.length = 0;
  for (const { watcher, database } of all.splice(0)) {
    await watcher.end().catch(() => {});
    await database.drop();
  }
});

async function lend(): Promise<Stage> {
  const found = idle.pop();
  if (found !== undefined) return found;
  const database = await freshDatabase({ migrated: true });
  const watcher = await connect(database.url);
  const functions = await watcher.value<string>(
    "select string_agg(pg_get_functiondef(oid), ';') from pg_proc where pronamespace = 'sluice'::regnamespace",
  );
  const settings = await watcher.value<string>(
    "select string_agg(format('update sluice.setting set value = %L where name = %L', value, name), ';') from sluice.setting",
  );
  const stage = { database, watcher, functions, settings };
  all.push(stage);
  return stage;
}

/** The code of what was refused or failed, or "accepted". */
export async function refusal(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return "accepted";
  } catch (e) {
    const { code, constraint } = e as { code?: string; constraint?: string };
    return (code === "SLUIC" ? constraint : code) ?? String(e);
  }
}

/** The ids of claimed tasks. */
export function idsOf(held: readonly Held[]): number[] {
  return held.map((h) => h.id);
}

async function connect(url: string): Promise<Session> {
  const client = new pg.Client(url);
  client.on("error", () => {});
  await client.connect();
  await client.query(QUICK);
  const { rows } = await client.query<{ pid: number }>("select pg_backend_pid() as pid");
  return new Session(client, rows[0]!.pid);
}

function settling(done: readonly Pick<Held, "id" | "token">[]): unknown[] {
  return done.length === 0 ? [null, null] : [done.map((h) => h.id), done.map((h) => h.token)];
}

function numbers(array: string | null): number[] {
  return (array?.slice(1, -1) ?? "")
    .split(",")
    .filter((x) => x !== "")
    .map(Number)
    .toSorted((a, b) => a - b);
}
