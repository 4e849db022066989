-- Returns schedules that are due, at most p_max, as a JSON list. now_ms: the time used for the comparison.
-- wait_ms: how long until the next one is due, null if there is none.
create or replace function sluice.due_schedules(p_max int, out due json, out now_ms float8, out wait_ms float8)
language plpgsql /* settings: index plans */ as $$
declare
  v_now timestamptz := sluice.clock();
begin
  now_ms := floor(extract(epoch from v_now) * 1000);
  due := (
    select json_agg(
      json_build_object(
        'name', d.name, 'revision', d.revision::text,
        'cron', d.cron, 'timeZone', d.time_zone, 'everyMs', d.every_ms,
        'missed', d.missed, 'nextAtMs', extract(epoch from d.next_at) * 1000,
        'inputBytes', case when d.missed = 'all' then octet_length(d.input::text) else 0 end)
      order by d.due_at, d.name)
    from (select * from sluice.schedule where due_at <= v_now order by due_at, name limit p_max) d);
  wait_ms := (
    select ceil(extract(epoch from due_at - v_now) * 1000) from sluice.schedule
    where due_at > v_now
    order by due_at
    limit 1);
end $$;
