-- Violations of nodes of runs: windows that are exceeded, counts that differ from tasks, tasks that nothing cancels or
-- that come back to a node that does not run.
create or replace function sluice.node_violations()
returns table (what text, id bigint, used bigint, cap bigint, held bigint) language sql stable as $$
  select 'a run above its window', n.run, x.running, n.window_size::bigint, n.node::bigint
  from sluice.workflow_node n
  cross join lateral (
    select count(*) as running
    from sluice.workflow_task w
    join sluice.running r on r.id = w.id
    where w.run = n.run and w.node = n.node) x
  where n.window_size is not null and n.state = 'running' and x.running > n.window_size
    and not exists (select from sluice.lowered where limit_id = sluice.window_limit())
  union all
  select 'a node''s counts differ from its tasks', n.run, n.succeeded + n.failed + n.cancelled, n.total, x.over
  from sluice.workflow_node n
  join sluice.workflow_run r on r.id = n.run and not r.pruning
  -- Tasks that a retry has not brought back yet have ended and are not counted.
  left join sluice.workflow_again a on a.run = n.run and a.node = n.node
  cross join lateral (
    select count(*) as tasks,
      count(d.id) filter (where not exists (select from sluice.workflow_note k where k.id = w.id)) as over,
      count(d.id) filter (
        where d.state = 'succeeded' and not exists (select from sluice.workflow_note k where k.id = w.id)) as good
    from sluice.workflow_task w
    left join sluice.done d on d.id = w.id
    where w.run = n.run and w.node = n.node) x
  where n.kind in ('task', 'each')
    and n.state not in ('pending', 'held', 'placing', 'skipped_by_failure', 'skipped_by_condition')
    and (x.tasks <> n.total and n.total > 0 and n.state <> 'cancelled'
      or n.total > 0 and x.tasks > 0 and (
        x.over <> n.succeeded + n.failed + n.cancelled + coalesce(a.failed + a.cancelled, 0)
        or x.good <> n.succeeded))
  union all
  select 'items are given up and nobody cancels them', n.run, null, null, w.id
  from sluice.workflow_node n
  join sluice.workflow_task w on w.run = n.run and w.node = n.node
  where n.failing and n.state = 'running'
    and not exists (select from sluice.workflow_halt h where h.run = n.run and h.node = n.node)
    and not exists (select from sluice.done d where d.id = w.id)
    and not exists (select from sluice.running x where x.id = w.id)
  union all
  select 'tasks are to come back to a node that does not run', a.run, null, null, a.node
  from sluice.workflow_again a
  where not exists (
    select from sluice.workflow_node n
    where n.run = a.run and n.node = a.node and n.state = 'running' and not n.failing)
$$;
