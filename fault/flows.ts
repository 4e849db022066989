// What the database says about flows when all is over, and while it is not.
import type pg from "pg";
import type { Unstamped } from "./stage.js";

const OPEN = `select count(*)::int as n from sluice.workflow_run where finished_at is null`;

// A fan-out of a handler goes by the tag of its task.
const AT_REST = `select coalesce(t.input #>> '{work,tag}', r.input ->> 'tag') as flow,
    case when r.finished_at is null then 'running' when r.state = 'succeeded' then 'succeeded' when r.state = 'failed' then 'failed' else 'cancelled' end as state
  from sluice.workflow_run r left join sluice.task t on t.id = r.parent order by r.id`;

/** How many are not over. */
export async function openFlows(sql: pg.Pool): Promise<number> {
  return (await sql.query<{ n: number }>(OPEN)).rows[0]!.n;
}

export async function flowsAtRest(sql: pg.Pool): Promise<Unstamped[]> {
  const { rows } = await sql.query<{ flow: string; state: "succeeded" }>(AT_REST);
  return rows.map(({ flow, state }) => ({ kind: "flowAtRest", flow, state }));
}
