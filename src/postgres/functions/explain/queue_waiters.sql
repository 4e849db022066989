-- Counts the tasks that wait at lanes, by stream and lane, with the reason: kind, null for those that the free slots of
-- their lane let through. keys: 1 for a lane that holds tasks back. At most p_most rows; cut: there may be more.
create or replace function sluice.queue_waiters(p_streams int[], p_most int)
returns table (stream int, kind text, limit_id int, n bigint, id bigint, cut boolean, keys int)
language plpgsql stable as $$
#variable_conflict use_column
begin
  return query
  with given_back as materialized (
    select d.lane, sum(d.freed) as n from sluice.dirty d where d.freed > 0 group by d.lane
  ), waiting as materialized (
    select stream, lane, place, id, lane_limits[held + 1] as limit_id
    from sluice.waiting
    where stream = any (p_streams)
    limit p_most
  ), at_lane as materialized (
    select y.lane, y.limit_id,
      case
        when sluice.lane_level(y.lane) = sluice.window_level() then sluice.lane_cap(y.lane, sluice.window_limit())
        else coalesce(l.cap, sluice.lane_cap(y.lane, y.limit_id))
      end::bigint - coalesce(l.used, 0) + coalesce(g.n, 0) as free
    from (select distinct lane, limit_id from waiting) y
    left join sluice.lane l on l.id = y.lane
    left join given_back g on g.lane = y.lane
  ), stood as (
    -- The first of a lane get its free slots.
    select y.stream, y.lane, y.limit_id, y.i <= l.free as through, count(*) as n, min(y.id) as id
    from (
      select x.*, row_number() over (partition by x.lane order by x.place, x.id) as i from waiting x) y
    join at_lane l on l.lane = y.lane and l.limit_id = y.limit_id
    group by 1, 2, 3, 4
  ), blocked as materialized (
    select b.lane from sluice.block b
  )
  select y.stream,
    case
      when y.through then null
      when sluice.lane_level(y.lane) = sluice.order_level()
        then case when y.lane in (select b.lane from blocked b) then 'blocked' else 'order' end
      when sluice.lane_level(y.lane) = sluice.key_level() then 'limit'
      else sluice.explain_window(y.lane)
    end,
    case when not y.through then nullif(greatest(y.limit_id, 0), 0) end,
    y.n, y.id, (select count(*) from waiting) >= p_most, case when y.through then 0 else 1 end
  from stood y;
end $$;
