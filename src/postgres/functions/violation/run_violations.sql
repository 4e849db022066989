-- Violations of runs: a live run that nothing moves or that no step looks for, a count of open nodes that is wrong, a
-- run that has ended before its tasks.
create or replace function sluice.run_violations()
returns table (what text, id bigint, used bigint, cap bigint, held bigint) language sql stable as $$
  select 'a run that nothing moves', r.id, r.open::bigint, null::bigint, null::bigint
  from sluice.workflow_run r
  where r.finished_at is null and not exists (
    select from sluice.workflow_node n
    where n.run = r.id
      and (n.state = 'held'
        or n.state = 'running' and n.kind = 'waitFor'
        or n.state = 'running' and exists (
          select from sluice.workflow_timer t where t.run = n.run and t.node = n.node)
        or n.state = 'placing' and exists (
          select from sluice.workflow_unplaced u where u.run = n.run and u.node = n.node)
        or n.state = 'running' and n.total > n.succeeded + n.failed + n.cancelled))
  union all
  select 'a run lives and no step looks for it', r.id, r.open, null, null
  from sluice.workflow_run r
  where r.finished_at is null and not exists (select from sluice.workflow_active)
  union all
  select 'a run''s open nodes differ', r.id, r.open, null, x.n
  from sluice.workflow_run r
  cross join lateral (
    select count(*) as n from sluice.workflow_node n
    where n.run = r.id and n.state in ('pending', 'held', 'placing', 'running')) x
  where x.n <> r.open
  union all
  select 'a run is over with tasks that are not', r.id, null, null, w.id
  from sluice.workflow_run r
  join sluice.workflow_task w on w.run = r.id
  where r.finished_at is not null and not exists (select from sluice.done d where d.id = w.id)
$$;
