// The audit of the demo must fail when the queue does. These tests remove guards from the schema before the demo
// uses it.
import type pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { lookAt, until } from "../flow/scene.js";
import { mutate, type Mutation } from "../postgres/mutation.js";
import { freshDatabase } from "../support/database.js";
import { play, type Played } from "./play.js";

const PATIENCE_MS = 150_000;
const WAIT_MS = 60_000;

interface Sabotaged {
  readonly sql: pg.Pool;
  play(tasks: number): Played;
}

/** A migrated database with these mutations applied. */
async function sabotaged(mutations: readonly Mutation[], script = ""): Promise<Sabotaged> {
  const database = await freshDatabase({ migrated: true });
  const sql = lookAt(database.url);
  onTestFinished(async () => {
    await sql.end();
    await database.drop();
  });
  const watcher = { script: (text: string) => sql.query(text) };
  await watcher.script(script);
  for (const mutation of mutations) await mutate(mutation)(watcher);
  return {
    sql,
    play: (tasks) =>
      play(["--schema", "sluice", "--json", "--tasks", String(tasks)], {
        DATABASE_URL: database.url,
      }),
  };
}

const lastInFirstOut: Mutation = {
  in: "admit_order",
  edits: [["place", "place desc, id desc"]],
};
const threeTimesTheSlots = `
  create function public.triple() returns trigger language plpgsql as $$
  begin
    new.cap := 3 * new.cap;
    return new;
  end $$;
  create trigger triple before insert or update of cap on sluice.gate for each row execute function public.triple();`;
// Mails have no lane, so no task waits behind those that vanish.
const mailsVanish = `
  create function public.vanish() returns trigger language plpgsql as $$
  begin
    return case when new.id % 20 = 0 and coalesce(cardinality(new.lanes), 0) = 0 then null else new end;
  end $$;
  create trigger vanish before insert on sluice.gated for each row execute function public.vanish();`;

test(
  "the demo fails on a queue that exceeds limits, breaks order and loses tasks, and counts each violation",
  { timeout: PATIENCE_MS },
  async () => {
    const queue = await sabotaged([lastInFirstOut], threeTimesTheSlots + mailsVanish);
    const { code, out, report } = await queue.play(800).end;
    const { lost, overLimit, outOfOrder, findings } = report();
    const found = [lost > 0, overLimit > 0, outOfOrder > 0];
    expect(found, out).toEqual([true, true, true]);
    expect(findings.length).toBeGreaterThan(2);
    expect(out).toContain("The audit failed.");
    expect(code).toBe(1);
  },
);

// The second completion of worker-1 waits just before the fence, under a name by which the test finds it.
const STAGED = 7;
const staged = `create sequence public.completion`;
const waitBeforeTheFence: readonly [string, string] = [
  "lease",
  `if current_setting('application_name') = 'worker-1' and nextval('public.completion') = 2 then
    perform set_config('application_name', 'zombie of ' || p_id, true);
    perform pg_advisory_xact_lock_shared(${STAGED});
  end if;
  perform sluice.require_lease(p_worker);`,
];
// A frozen worker that resumes aborts such a transaction itself, because its statements have deadlines. The fence refuses
// the completion if the worker does not. Attack 2 shows a queue without the fence, and audit.test.ts a task that ends twice.
test(
  "the queue of the demo refuses a zombie's completion and doubles no charge",
  { timeout: PATIENCE_MS },
  async () => {
    const mutation = { in: "settle_in_transaction", edits: [waitBeforeTheFence] };
    const queue = await sabotaged([mutation], staged);
    const test = await queue.sql.connect();
    await test.query("select pg_advisory_lock($1)", [STAGED]);
    const { process: demo, end } = queue.play(500);

    const pid = pidOf("worker-1", await demo.line((line) => line.includes("worker-1 (pid ")));
    const task = await until("a completion before the fence", () => zombieOf(queue.sql), WAIT_MS);
    process.kill(pid, "SIGSTOP");
    onTestFinished(() => wake(pid));
    await until("another to complete its task", () => completed(queue.sql, task), WAIT_MS);
    await test.query("select pg_advisory_unlock($1)", [STAGED]);
    test.release();
    process.kill(pid, "SIGCONT");

    // A mail that the zombie was sending may have been sent twice: only charges are fenced.
    const { report } = await end;
    const charges = report().findings.filter((found) => /^charge .* was completed/.test(found));
    expect(charges).toEqual([]);
  },
);

function pidOf(worker: string, line: string): number {
  return Number(new RegExp(`${worker} \\(pid (\\d+)\\)`).exec(line)![1]);
}

async function zombieOf(sql: pg.Pool): Promise<string | undefined> {
  const { rows } = await sql.query<{ name: string }>(
    "select application_name as name from pg_stat_activity where datname = current_database() and application_name like 'zombie of %' and wait_event_type = 'Lock'",
  );
  return rows[0]?.name.slice("zombie of ".length);
}

async function completed(sql: pg.Pool, task: string): Promise<boolean> {
  const text = "select from sluice_log.entry where kind = 'end' and task = $1";
  return (await sql.query(text, [task])).rowCount! > 0;
}

/** A frozen process handles no signal, and after a failed test nothing else would resume it. */
function wake(pid: number): void {
  try {
    process.kill(pid, "SIGCONT");
  } catch {
    // The process has already ended.
  }
}
