-- Returns the error of the last failed attempt of a task that has not ended; null if there is none.
create or replace function sluice.last_error(p_id bigint) returns json language sql stable as $$
  select a.error from sluice.attempt a where a.id = p_id order by a.failed_at desc limit 1
$$;
