import pg from "pg";

/** What a handler reports about one execution of its task. */
export interface AuditEntry {
  readonly task: string;
  readonly attempt: number;
  readonly claim: string;
  readonly type: string;
  readonly orderKey: string | null;
  /** Each limit that the execution holds a slot of, as `name` or `name:key`. */
  readonly limitKeys: readonly string[];
}

/** One execution as its handler saw it, in microseconds of the database's clock. */
export interface AuditRun extends AuditEntry {
  readonly process: string;
  readonly start: number;
  /** When its handler ended, or when its process was found dead; null while neither is known. */
  readonly end: number | null;
  /** Whether its handler came to its end. */
  readonly ended: boolean;
}

const CREATE = `create table audit (
  n bigint generated always as identity primary key, kind text not null, process text not null, task bigint,
  attempt int, claim text, type text, order_key text, limit_keys text[], at timestamptz not null default clock_timestamp())`;

const APPEND = `insert into audit (kind, process, task, attempt, claim, type, order_key, limit_keys)
  select kind, $2, task, attempt, claim, type, "orderKey", "limitKeys"
  from json_to_recordset($1::json) x(kind text, task bigint, attempt int, claim text, type text, "orderKey" text, "limitKeys" text[])`;

const READ = `select kind, process, task::text, attempt, claim, type, order_key, limit_keys,
  (extract(epoch from at) * 1000000)::float8 as at from audit order by n`;

interface Row {
  readonly kind: "start" | "end" | "dead";
  readonly process: string;
  readonly task: string;
  readonly attempt: number;
  readonly claim: string;
  readonly type: string;
  readonly order_key: string | null;
  readonly limit_keys: string[] | null;
  readonly at: number;
}

/** Creates the append-only table, once, before the first write. */
export async function createAudit(url: string): Promise<void> {
  const client = new pg.Client(url);
  await client.connect();
  await client.query(CREATE);
  await client.end();
}

/**
 * Appends start and end rows on a connection of its own. A handler waits for both, so what the log
 * says lies inside what really ran. Entries that arrive while a statement is under way share the next.
 */
export class AuditWriter {
  readonly #client: pg.Client;
  readonly #process: string;
  #waiting: { entry: object; resolve: () => void; reject: (e: unknown) => void }[] = [];
  #writing = false;

  private constructor(client: pg.Client, process: string) {
    this.#client = client;
    this.#process = process;
  }

  static async open(url: string, process: string): Promise<AuditWriter> {
    // The name keeps tests that cut connections from cutting this one.
    const client = new pg.Client({ connectionString: url, application_name: "audit" });
    client.on("error", () => {});
    await client.connect();
    await client.query("set synchronous_commit = off");
    return new AuditWriter(client, process);
  }

  start(entry: AuditEntry): Promise<void> {
    return this.#append({ kind: "start", ...entry });
  }

  end(entry: AuditEntry): Promise<void> {
    return this.#append({ kind: "end", ...entry });
  }

  /** How many executions of a type have started in all processes. */
  async startedOf(type: string): Promise<number> {
    const text = "select count(*)::int as n from audit where kind = 'start' and type = $1";
    const { rows } = await this.#client.query<{ n: number }>({ text, values: [type] });
    return rows[0]!.n;
  }

  close(): Promise<void> {
    return this.#client.end();
  }

  #append(entry: object): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entry, resolve, reject });
      if (!this.#writing) void this.#write();
    });
  }

  async #write(): Promise<void> {
    this.#writing = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0);
      const rows = JSON.stringify(batch.map(({ entry }) => entry));
      try {
        await this.#client.query({ name: "append", text: APPEND, values: [rows, this.#process] });
        for (const { resolve } of batch) resolve();
      } catch (e) {
        for (const { reject } of batch) reject(e);
      }
    }
    this.#writing = false;
  }
}

/** Records that a process is dead, so that its open executions have ended. */
export async function noteDead(sql: pg.Pool, process: string): Promise<void> {
  await sql.query("insert into audit (kind, process) values ('dead', $1)", [process]);
}

export async function readAudit(sql: pg.Pool): Promise<Audit> {
  return new Audit(runsOf((await sql.query<Row>(READ)).rows));
}

function runsOf(rows: readonly Row[]): AuditRun[] {
  const ends = new Map<string, number>();
  const deaths = new Map<string, number>();
  for (const row of rows) {
    if (row.kind === "end") ends.set(idOf(row), row.at);
    if (row.kind === "dead") deaths.set(row.process, row.at);
  }
  return rows
    .filter((row) => row.kind === "start")
    .map((row) => {
      const end = ends.get(idOf(row));
      return {
        ...entryOf(row),
        end: end ?? deaths.get(row.process) ?? null,
        ended: end !== undefined,
      };
    });
}

const idOf = (row: Row): string => `${row.task} ${row.claim}`;

function entryOf(row: Row): Omit<AuditRun, "end" | "ended"> {
  const { process, task, attempt, claim, type, at } = row;
  const [orderKey, limitKeys] = [row.order_key, row.limit_keys ?? []];
  return { process, task, attempt, claim, type, orderKey, limitKeys, start: at };
}

/** The checker. It knows only what handlers wrote and, where asked, which ids enqueue acknowledged. */
export class Audit {
  readonly runs: readonly AuditRun[];

  constructor(runs: readonly AuditRun[]) {
    this.runs = runs.toSorted((a, b) => a.start - b.start);
  }

  /** Acknowledged tasks whose handler never ended. */
  lost(acknowledged: Iterable<string>): string[] {
    const ended = new Set(this.runs.filter((run) => run.ended).map((run) => run.task));
    return [...acknowledged].filter((id) => !ended.has(id));
  }

  /** Tasks whose handler ended more than once. */
  twice(): string[] {
    const seen = new Set<string>();
    const again = this.runs.filter(({ ended, task }) => ended && seen.size === seen.add(task).size);
    return [...new Set(again.map(({ task }) => task))];
  }

  /** The largest number of these executions at once. */
  peak(of: (run: AuditRun) => boolean): number {
    const marks = this.runs.filter(of).flatMap((run) => [
      { at: run.start, by: 1 },
      { at: run.end ?? Number.POSITIVE_INFINITY, by: -1 },
    ]);
    let now = 0;
    // In the same microsecond the slot was released first.
    return marks
      .toSorted((a, b) => a.at - b.at || a.by - b.by)
      .reduce((peak, { by }) => Math.max(peak, (now += by)), 0);
  }

  /** The peak of one limit, or of one key of it. */
  peakOf(limitKey: string): number {
    return this.peak((run) => run.limitKeys.includes(limitKey));
  }

  /** Violations of an order key: two tasks at once, or one before the end of an earlier one. */
  disorder(): string[] {
    const byKey = new Map<string, AuditRun[]>();
    for (const run of this.runs) {
      if (run.orderKey !== null) byKey.set(run.orderKey, [...(byKey.get(run.orderKey) ?? []), run]);
    }
    return [...byKey].flatMap(([key, runs]) => [...overlaps(key, runs), ...inversions(key, runs)]);
  }
}

function overlaps(key: string, runs: readonly AuditRun[]): string[] {
  return runs.slice(1).flatMap((run, i) => {
    const before = runs[i]!;
    const apart = before.end !== null && before.end <= run.start;
    return apart ? [] : [`${key}: ${before.task} and ${run.task} overlap`];
  });
}

/** Ids follow the order in which they were acknowledged; a task ends with the last of its runs. */
function inversions(key: string, runs: readonly AuditRun[]): string[] {
  const found: string[] = [];
  let highest = -1;
  for (const run of runs) {
    if (Number(run.task) < highest) found.push(`${key}: ${run.task} ran after ${highest}`);
    highest = Math.max(highest, Number(run.task));
  }
  return found;
}

/** Tasks whose completion the database accepted more than once. */
export async function acceptedTwice(sql: pg.Pool): Promise<string[]> {
  const { rows } = await sql.query<{ id: string }>("select id::text from sluice.done group by id having count(*) > 1");
  return rows.map(({ id }) => id);
}

/** What the schema's own view finds wrong: slots without holders, tasks in two states, waiters that nothing wakes. */
export async function violations(sql: pg.Pool): Promise<unknown[]> {
  return (await sql.query("select * from sluice.violation")).rows;
}
