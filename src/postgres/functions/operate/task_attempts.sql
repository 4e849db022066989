-- Returns the failed attempts of a task, the oldest first: those that were retried, and the final failure. A producer
-- may call this but cannot list tasks.
create or replace function sluice.task_attempts(p_id bigint)
returns table (attempt int, worker text, started_at timestamptz, failed_at timestamptz, error json)
language sql stable as $$
  select a.attempt::int, a.worker, a.started_at, a.failed_at, a.error
  from (
    select k.attempt, k.worker, k.started_at, k.failed_at, k.error
    from sluice.attempt k where k.id = p_id
    union all
    select d.attempt, (select w.name from sluice.worker w where w.id = d.worker), d.started_at, d.finished_at,
      d.outcome
    from sluice.done d where d.id = p_id and d.state = 'failed'
  ) a
  order by a.failed_at
$$;
