-- Counts the tasks that wait for runs they made, or for a time, by stream. kind: 'children' or 'scheduled', null for
-- those that are about to move on. At most p_most rows of each kind; cut: there may be more. until: the next time.
create or replace function sluice.queue_asleep(p_streams int[], p_most int, p_now timestamptz)
returns table (stream int, kind text, n bigint, id bigint, cut boolean, until timestamptz)
language plpgsql stable as $$
#variable_conflict use_column
begin
  return query
  with later as materialized (
    select t.stream, c.id, c.run_at
    from sluice.scheduled c
    join sluice.task t on t.id = c.id
    where t.stream = any (p_streams)
    limit p_most
  )
  select y.stream, case when y.sleeps then 'children' end, count(*), min(y.id), count(*) >= p_most, null::timestamptz
  from (
    select t.stream, p.id,
      exists (select from sluice.workflow_run r where r.id = any (p.runs) and r.finished_at is null) as sleeps
    from sluice.parent p
    join sluice.task t on t.id = p.id
    where t.stream = any (p_streams)
    limit p_most) y
  group by y.stream, y.sleeps
  union all
  select y.stream, case when y.run_at > p_now then 'scheduled' end, count(*),
    (array_agg(y.id order by y.run_at, y.id))[1], (select count(*) from later) >= p_most,
    min(y.run_at) filter (where y.run_at > p_now)
  from later y
  group by y.stream, y.run_at > p_now;
end $$;
