-- Per node: how many tasks it has, and how many have ended how. error: why it failed or was cancelled, without its
-- stack; for an each the error of the node, so that no item is looked at. due_at: until when it sleeps, or waits for
-- its event. unserved: its tasks exist or are to be placed, and no live worker serves their type.
-- last_error: of the last failed attempt of its task, while it is retried.
create or replace view sluice.workflow_progress as
  select n.run, n.node, coalesce(s.name, r.name) as name, n.kind, t.type,
    case when n.state in ('skipped_by_failure', 'skipped_by_condition') then 'skipped' else n.state::text end as state,
    n.total, n.succeeded, n.failed, n.cancelled, n.window_size,
    case
      when n.state not in ('running', 'placing', 'held') or n.total = 0 then 0
      when n.kind = 'task' then (select count(*)::int from sluice.running x where x.id = n.task)
      -- A slot that was given back by a note that has not been acted on is not in use: its task is over.
      when n.lane is not null then least(
        coalesce((select l.used from sluice.lane l where l.id = n.lane), 0),
        n.total - n.succeeded - n.failed - n.cancelled) end as started,
    n.task, n.outcome, n.started_at, n.finished_at,
    case when n.state in ('failed', 'cancelled') then json_build_object(
      'name', e.kept ->> 'name', 'message', e.kept ->> 'message',
      'code', e.kept ->> 'code', 'reason', e.kept ->> 'reason') end as error,
    s.event,
    case when n.state = 'running' and n.kind in ('sleep', 'waitFor') then (
      select x.due_at from sluice.workflow_timer x where x.run = n.run and x.node = n.node) end as due_at,
    n.state in ('running', 'placing') and n.kind in ('task', 'each') and not exists (
      select from sluice.worker w where w.expires_at > sluice.clock() and t.id = any (w.streams)) as unserved,
    case when n.state = 'running' and n.kind = 'task' then sluice.last_error(n.task) end as last_error
  from sluice.workflow_node n
  join sluice.workflow_run r on r.id = n.run and not r.pruning
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  left join sluice.stream t on t.id = coalesce(n.stream, s.stream)
  left join lateral (
    select coalesce(
      n.outcome,
      (select d.outcome from sluice.done d where d.id = n.task limit 1),
      case when n.state = 'cancelled' then r.outcome end) as kept
    where n.state in ('failed', 'cancelled')
  ) e on true;
