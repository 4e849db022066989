// Why nothing moves any more: the queries that a person would run to find the reason.
import type { Theatre } from "./theatre.js";

const QUESTIONS: Readonly<Record<string, string>> = {
  // One row each, so that `to_jsonb` shows all of it.
  "left, by type and place": `select s.type, x.place, count(*)::int as n, min(x.id) as first from (
      select id, 'scheduled' as place from sluice.scheduled union all select id, 'waiting' from sluice.waiting
      union all select id, 'parked' from sluice.parked union all select id, 'ready' from sluice.ready
      union all select id, 'gated' from sluice.gated union all select id, 'suspect' from sluice.suspect
      union all select id, 'running' from sluice.running) x
    join sluice.task t on t.id = x.id join sluice.stream s on s.id = t.stream group by 1, 2 order by 1, 2`,
  running: `select r.id, s.type, r.attempt, w.name as worker, r.claim::text, now() - r.started_at as since, r.gate, r.stream_gate
    from sluice.running r join sluice.task t on t.id = r.id join sluice.stream s on s.id = t.stream
    left join sluice.worker w on w.id = r.worker order by r.started_at limit 20`,
  suspects: `select u.id, s.type, w.name as reserved_by, w.expires_at - now() as lease from sluice.suspect u
    join sluice.stream s on s.id = u.stream left join sluice.worker w on w.id = u.reserved_by order by u.id limit 20`,
  workers: `select name, expires_at - now() as lease, capacity_max, capacity_available, asleep, draining from sluice.worker`,
  gates: `select l.name, g.id, g.cap, g.used, (select sum(n) from sluice.credit c where c.gate = g.id) as credit from sluice.gate g
    left join sluice.limits l on l.id = g.id order by g.id`,
  "full lanes": `select id, limit_id, sluice.cap_of(cap, limit_id) as cap, used from sluice.lane where limit_id > 0 and used >= sluice.cap_of(cap, limit_id) limit 20`,
  "notes and lowered": `select (select count(*) from sluice.dirty) as dirty, (select count(*) from sluice.postponed) as postponed, (select array_agg(limit_id) from sluice.lowered) as lowered`,
  streams: `select id, queue, type, gate, paused, unserved from sluice.stream where paused or unserved or gate <> 0`,
  "workflow runs": `select r.id, r.input ->> 'tag' as tag, r.parent, r.name, r.state, r.open, r.paused, r.stopping, r.created_at from sluice.workflow_run r
    where r.finished_at is null order by r.id limit 20`,
  "nodes of these runs": `select n.run, n.node, n.kind, n.policy, n.state, n.blocked, n.failing, n.total, n.succeeded, n.failed, n.cancelled, n.window_size, l.used, l.cap
    from sluice.workflow_node n join sluice.workflow_run r on r.id = n.run left join sluice.lane l on l.id = n.lane
    where r.finished_at is null and n.state in ('running', 'placing', 'held') order by n.run, n.node limit 20`,
  "placing, halts, notes, parents": `select (select count(*) from sluice.workflow_unplaced) as unplaced, (select count(*) from sluice.workflow_halt) as halts,
    (select count(*) from sluice.workflow_again) as not_back, (select count(*) from sluice.workflow_orphan) as orphans,
    (select count(*) from sluice.workflow_note) as notes, (select count(*) from sluice.parent) as parents`,
  sessions: `select pid, application_name as name, state, wait_event, now() - xact_start as open, left(query, 80) as query
    from pg_stat_activity where xact_start < now() - interval '1 second' and backend_type = 'client backend'`,
  locks: `select locktype, relation::regclass::text, mode, granted, pid from pg_locks where not granted limit 20`,
};

/** Lines for a person, a few for each question. */
export async function whyStuck({ sql }: Pick<Theatre, "sql">): Promise<string[]> {
  const lines: string[] = [];
  for (const [title, text] of Object.entries(QUESTIONS)) {
    const { rows } = await sql.query<{ what: string }>(`select to_jsonb(q)::text as what from (${text}) q`);
    lines.push(`${title}:`, ...rows.map(({ what }) => `  ${what}`));
  }
  return lines;
}
