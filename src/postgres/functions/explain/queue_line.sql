-- Counts the tasks that have passed their lanes, by stream, gate and `over`: the lane of which they hold a slot above a
-- number that was lowered. At most p_most rows of each stream and table; cut: there may be more. id: the first of them.
create or replace function sluice.queue_line(p_streams int[], p_most int)
returns table (stream int, gate int, over bigint, n bigint, id bigint, cut boolean) language plpgsql stable as $$
#variable_conflict use_column
declare
  v_lowered boolean := exists (select from sluice.lowered);
begin
  return query
  select s.id, y.gate, y.over, count(*), min(y.id), sum(count(*)) over (partition by s.id) >= p_most
  from unnest(p_streams) s(id)
  cross join lateral (
    select 0 as gate, r.id, case when v_lowered then r.lanes[sluice.over_lane(r.lanes)] end as over
    from sluice.ready r
    where r.stream = s.id
    order by r.rank, r.turn
    limit p_most) y
  group by s.id, y.gate, y.over
  union all
  select s.id, y.gate, y.over, count(*), min(y.id), sum(count(*)) over (partition by s.id) >= p_most
  from unnest(p_streams) s(id)
  cross join lateral (
    select g.gate, g.id, case when v_lowered then g.lanes[sluice.over_lane(g.lanes)] end as over
    from sluice.gated g
    where g.stream = s.id
    order by g.gate, g.rank, g.turn
    limit p_most) y
  group by s.id, y.gate, y.over
  union all
  select c.stream, t.gate, null, 1, c.id, false
  from sluice.suspect c
  cross join lateral (select k.gate from sluice.task k where k.id = c.id limit 1) t
  where c.stream = any (p_streams);
end $$;
