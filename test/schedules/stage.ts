import pg from "pg";
import { expect, onTestFinished } from "vitest";
import { Sluice, task, tickTime, type, type ScheduleOptions } from "../../src/index.js";
import { silentLogger, type Logger } from "../../src/core/ports.js";
import { tick } from "../../src/schedules/tick.js";
import { Database } from "../../src/postgres/database.js";
import { freshDatabase } from "../support/database.js";

/** A database whose clock stands still until the test moves it. */
export interface Stage {
  readonly url: string;
  readonly sluice: Sluice;
  readonly sql: pg.Pool;
  /** Sets the clock of the database. */
  setClock(at: string): Promise<void>;
  /** Enqueues due ticks as a keeper does, until none is due. Returns the number of ticks. */
  keep(log?: Logger): Promise<number>;
  /** The times of all ticks that were enqueued, in the order of their tasks. */
  ticks(): Promise<string[]>;
}

/** A task whose input is the time of its tick. */
export const echo = task("echo", { input: type<{ at: string; note?: string }>() });

/** A schedule of that task. */
export function echoing(
  options: Partial<ScheduleOptions<{ at: string; note?: string }>> = {},
): ScheduleOptions<{ at: string; note?: string }> {
  const timing = "everyMs" in options || "cron" in options ? {} : { cron: "0 * * * *" };
  return { ...timing, task: echo, input: { at: tickTime }, ...options } as never;
}

const CLOCK = `create table public.test_clock (at timestamptz not null);
  insert into public.test_clock values ('2026-01-01T00:30Z');
  create or replace function sluice.clock() returns timestamptz language sql volatile as $$ select at from public.test_clock $$`;
const LOOKS_MAX = 1_000;

export async function stage(): Promise<Stage> {
  const database = await freshDatabase({ migrated: true });
  const sql = new pg.Pool({ connectionString: database.url, max: 4 });
  sql.on("error", () => {});
  await sql.query(CLOCK);
  const sluice = await Sluice.connect({ url: database.url, migrate: false, listen: false });
  const db = new Database({ url: database.url });
  onTestFinished(async () => {
    await Promise.all([sluice.close(), db.close(), sql.end()]);
    await database.drop();
  });
  return {
    url: database.url,
    sluice,
    sql,
    setClock: async (at) => void (await sql.query("update public.test_clock set at = $1", [at])),
    keep: (log = silentLogger) => keep(db, log),
    ticks: async () => {
      const { rows } = await sql.query<{ at: string }>("select input ->> 'at' as at from sluice.task order by id");
      return rows.map((row) => row.at);
    },
  };
}

/** The clock stands still, so a pass that enqueued nothing is the last. */
async function keep(db: Database, log: Logger): Promise<number> {
  let sum = 0;
  for (let looks = 0; looks < LOOKS_MAX; looks++) {
    const { ticks, nextMs } = await tick(db, log);
    sum += ticks;
    if (nextMs > 0) return sum;
  }
  throw new Error("the keeper finds no end");
}

/** The full hours of a day, as ticks. */
export function hours(day: string, ...list: number[]): string[] {
  return list.map((hour) => `${day}T${String(hour).padStart(2, "0")}:00:00.000Z`);
}

export async function violations({ sql }: Stage): Promise<void> {
  const { rows } = await sql.query("select what from sluice.violation");
  expect(rows).toEqual([]);
}
