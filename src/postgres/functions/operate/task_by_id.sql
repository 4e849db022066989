-- Returns one task by its id, without its input. A producer may call this but cannot list tasks.
create or replace function sluice.task_by_id(p_id bigint)
returns table (
  id bigint, type text, queue text, priority int, state text, attempt int, attempts_max int,
  created_at timestamptz, run_at timestamptz, started_at timestamptz, finished_at timestamptz, outcome json)
language sql stable as $$
  select t.id, t.type, t.queue, t.priority::int, t.state, t.attempt::int, t.attempts_max::int,
    t.created_at, t.run_at, t.started_at, t.finished_at, t.outcome
  from sluice.task_state t
  where t.id = p_id
$$;
