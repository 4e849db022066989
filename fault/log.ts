// The audit's log: one append-only table on a server that no fault touches.
import pg from "pg";
import type { Line } from "./audit/line.js";
import type { Log, Unstamped } from "./stage.js";

const CREATE = `create table line (
  n bigint generated always as identity, at timestamptz not null, process text not null, said text not null)`;

const APPEND = `insert into line (at, process, said)
  select clock_timestamp() - ago_ms * interval '1 millisecond', process, said
  from unnest($1::float8[], $2::text[], $3::text[]) u(ago_ms, process, said)`;

const READ = `select extract(epoch from at)::float8 * 1000 as at, process, said from line order by n`;

const PAGE_LINES = 20_000;

interface Entry {
  readonly agoMs: number;
  readonly process: string;
  readonly said: string;
}

interface Waiting {
  readonly entries: readonly Entry[];
  readonly resolve: () => void;
  readonly reject: (e: unknown) => void;
}

/** A line, and how long ago it was true if that was not just now. */
export type Said = Unstamped & { readonly agoMs?: number };

/**
 * Appends on a connection of its own. Whoever waits for a line to be stored knows that its time lies
 * before whatever he does next. Lines that come while a statement is under way share the next one.
 */
export class LogWriter implements Log {
  readonly #client: pg.Client;
  readonly #process: string;
  #waiting: Waiting[] = [];
  #writing = false;

  private constructor(client: pg.Client, process: string) {
    this.#client = client;
    this.#process = process;
  }

  static async open(url: string, process: string): Promise<LogWriter> {
    const client = new pg.Client({ connectionString: url, application_name: process });
    // A broken connection makes the next write fail; unheard, the event would end the process.
    client.on("error", () => {});
    await client.connect();
    return new LogWriter(client, process);
  }

  /** Makes the table, once, before anybody writes to it. */
  async create(): Promise<void> {
    await this.#client.query(CREATE);
  }

  write(lines: readonly Said[]): Promise<void> {
    const entries = lines.map(({ agoMs = 0, process = this.#process, ...line }) => {
      return { agoMs, process, said: JSON.stringify(line) };
    });
    return new Promise((resolve, reject) => {
      this.#waiting.push({ entries, resolve, reject });
      if (!this.#writing) void this.#write();
    });
  }

  close(): Promise<void> {
    return this.#client.end();
  }

  async #write(): Promise<void> {
    this.#writing = true;
    while (this.#waiting.length > 0) {
      const batch = this.#waiting.splice(0);
      try {
        await this.#append(batch.flatMap(({ entries }) => entries));
        for (const { resolve } of batch) resolve();
      } catch (e) {
        for (const { reject } of batch) reject(e);
      }
    }
    this.#writing = false;
  }

  async #append(entries: readonly Entry[]): Promise<void> {
    const values = [
      entries.map(({ agoMs }) => agoMs),
      entries.map(({ process }) => process),
      entries.map(({ said }) => said),
    ];
    await this.#client.query({ name: "append", text: APPEND, values });
  }
}

/** All lines in the order in which they were stored, read in pages so that the server's answer is never held twice. */
export async function readLog(url: string): Promise<Line[]> {
  const client = new pg.Client(url);
  await client.connect();
  const lines: Line[] = [];
  try {
    await client.query("begin");
    await client.query(`declare log cursor for ${READ}`);
    for (;;) {
      const { rows } = await client.query<{ at: number; process: string; said: string }>(
        `fetch ${PAGE_LINES} from log`,
      );
      for (const { at, process, said } of rows) lines.push({ at, process, ...(JSON.parse(said) as object) } as Line);
      if (rows.length < PAGE_LINES) return lines;
    }
  } finally {
    await client.end();
  }
}

/** What a process had sent before it died may be stored a moment after its death was: it was said before. */
function beforeDeath(said: readonly Line[]): readonly Line[] {
  const deaths = new Map<string, number>();
  for (const line of said) if (line.kind === "dead") deaths.set(line.process, line.at);
  return said.map((line) => {
    const death = deaths.get(line.process);
    const ownWord = line.kind === "start" || line.kind === "end";
    return ownWord && death !== undefined && line.at > death ? { ...line, at: death } : line;
  });
}

/**
 * A run may end twice in the log: it said that it was done, and while it said so its signal came, or the
 * transaction failed whose last word that was. Its second word counts, with the earlier time of the two.
 * Only of a commit whose reply is lost nobody knows more than the database. `said` is in the order in
 * which it was said; the answer is by time.
 */
export function corrected(said: readonly Line[], accepted: readonly Line[]): Line[] {
  const book = new Corrections(accepted);
  const kept: Line[] = [];
  for (const line of beforeDeath(said)) {
    const first = book.firstOf(line, kept.length);
    if (first === undefined) kept.push(line);
    else if (!book.committed(line)) kept[first] = { ...line, at: Math.min(line.at, kept[first]!.at) };
  }
  return [...kept, ...accepted].toSorted((a, b) => a.at - b.at);
}

class Corrections {
  readonly #succeeded = new Set<string>();
  readonly #ends = new Map<string, number>();

  constructor(accepted: readonly Line[]) {
    for (const line of accepted)
      if (line.kind === "accepted" && line.state === "succeeded") this.#succeeded.add(`${line.task} ${line.claim}`);
  }

  /** Where the same run has said before that it ended; else this is noted as that place. */
  firstOf(line: Line, place: number): number | undefined {
    if (line.kind !== "end") return undefined;
    const run = `${line.task} ${line.claim}`;
    const first = this.#ends.get(run);
    if (first === undefined) this.#ends.set(run, place);
    return first;
  }

  committed(line: Line): boolean {
    return line.kind === "end" && this.#succeeded.has(`${line.task} ${line.claim}`);
  }
}
