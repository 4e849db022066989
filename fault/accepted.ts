// What the database has recorded, told by the database itself in the transaction that records it.
import type pg from "pg";
import type { Line } from "./audit/line.js";
import { transactional } from "./load/terms.js";

const CREATE = `
  create schema audit;
  create table audit.accepted (task bigint not null, state text not null, attempt int not null, at timestamptz not null, claim text, code text);
  -- What handlers do in the transaction that completes their task.
  create table audit.effect (task bigint not null);
  create function audit.note() returns trigger language plpgsql as $$
  begin
    insert into audit.accepted values (new.id, new.state, new.attempt, clock_timestamp(),
      -- What a handler returns is the claim under which it ran.
      case when new.state = 'succeeded' then new.outcome #>> '{}' end, case when new.state = 'failed' then new.outcome ->> 'code' end);
    return null;
  end $$;
  create trigger note after insert on sluice.done for each row execute function audit.note();`;

const READ = `select extract(epoch from at)::float8 * 1000 as at, task::text as task, attempt, claim, code,
    state::text as state, t.input #>> '{work,tag}' as tag
  from audit.accepted left join sluice.task t on t.id = task order by at`;

// An effect belongs to a success, and to one only. A task that was retried by hand can have no success before.
const EFFECTS = `select coalesce(e.task, a.task)::text as task, coalesce(e.n, 0)::int as effects, coalesce(a.n, 0)::int as successes
  from (select task, count(*) as n from audit.effect group by task) e
  full join (select a.task, count(*) as n from audit.accepted a join sluice.task t on t.id = a.task join sluice.stream s on s.id = t.stream
    where a.state = 'succeeded' and s.type = any ($1) group by a.task) a on a.task = e.task
  where coalesce(e.n, 0) <> coalesce(a.n, 0) or e.n > 1 limit 100`;

export async function watchOutcomes(sql: pg.Pool): Promise<void> {
  await sql.query(CREATE);
}

export async function readAccepted(sql: pg.Pool): Promise<Line[]> {
  const { rows } = await sql.query<Record<string, unknown>>(READ);
  return rows.map((row) => ({ process: "queue", kind: "accepted", ...row }) as unknown as Line);
}

/** Effects of transactions that do not fit what was recorded, in words. */
export async function wrongEffects(sql: pg.Pool): Promise<string[]> {
  const { rows } = await sql.query<{ task: string; effects: number; successes: number }>(EFFECTS, [transactional]);
  return rows.map(
    ({ task, effects, successes }) =>
      `task ${task} succeeded ${successes} times, and its effect happened ${effects} times`,
  );
}
