-- Returns what a task has reported of its progress; null if nothing, or if another execution of it has begun since.
create or replace function sluice.task_progress(p_id bigint) returns json language sql stable as $$
  select json_build_object('fraction', p.fraction, 'data', p.data, 'at', p.at)
  from sluice.progress p
  where p.id = p_id and not exists (select from sluice.running r where r.id = p_id and r.claim <> p.claim)
$$;
