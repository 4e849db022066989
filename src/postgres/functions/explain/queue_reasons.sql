-- Returns the reasons that hold the tasks of these streams, with their numbers, the most frequent first.
create or replace function sluice.queue_reasons(p_streams int[], p_now timestamptz) returns json[]
language plpgsql stable as $$
declare
  v_most int := 100000;
begin
  return (
    with stream as materialized (
      select * from sluice.queue_streams(p_streams)
    ), held as (
      select s.type,
        coalesce(
          case when l.over is not null
            then case when sluice.lane_level(l.over) = sluice.window_level()
              then sluice.explain_window(l.over) else 'limit' end end,
          case when f.id is not null then 'limit' end,
          case when exists (select from sluice.suspect c where c.id = l.id)
            and s.held_by is distinct from 'paused' and s.held_by is distinct from 'noWorker' then 'suspect' end,
          s.held_by, 'next') as kind,
        case when l.over is null then f.id
          else (select nullif(greatest(k.limit_id, 0), 0) from sluice.lane k where k.id = l.over) end as limit_id,
        case when l.over is null then f.cap end as slots,
        case when l.over is null then f.used end as used,
        l.n, l.id, l.cut, 0 as keys, null::timestamptz as until
      from sluice.queue_line(p_streams, v_most) l
      join stream s on s.id = l.stream
      left join lateral sluice.full_total(l.gate, s.gate) f on true
      union all
      select s.type, coalesce(y.kind, s.held_by, 'next'), y.limit_id, null, null, y.n, y.id, y.cut, y.keys, null
      from sluice.queue_waiters(p_streams, v_most) y
      join stream s on s.id = y.stream
      union all
      select s.type,
        case
          when not s.served then 'noWorker'
          when f.id is not null then 'limit'
          else coalesce(s.held_by, 'next')
        end,
        case when s.served then f.id end, case when s.served then f.cap end, case when s.served then f.used end,
        x.n, x.id, x.n >= v_most, 0, null
      from sluice.queue_parked(p_streams, v_most) x
      join stream s on s.id = x.stream
      left join lateral sluice.full_total(x.gate, s.gate) f on true
      union all
      select s.type, coalesce(y.kind, s.held_by, 'next'), null, null, null, y.n, y.id, y.cut, 0, y.until
      from sluice.queue_asleep(p_streams, v_most, p_now) y
      join stream s on s.id = y.stream
    )
    select array_agg(
      json_build_object(
        'kind', d.kind, 'type', d.type, 'limit', (select l.name from sluice.limits l where l.id = d.limit_id),
        'slots', d.slots, 'used', d.used, 'keys', nullif(d.keys, 0), 'until', d.until,
        'count', d.n, 'more', d.cut, 'task', d.id::text)
      order by d.n desc, d.type, d.kind, d.limit_id)
    from (
      select type, kind, limit_id, max(slots) as slots, max(held.used) as used, sum(n)::bigint as n, min(id) as id,
        bool_or(cut) as cut, sum(keys) as keys, min(until) as until
      from held
      group by type, kind, limit_id) d);
end $$;
