-- Returns tasks that hold slots of keys and have stood, since before the turn p_before, at a total without room or in a
-- stream whose workers have no capacity. Of each kind at most p_max: half of them the last ones, the others from a
-- random place on, so that each has its chance.
create or replace function sluice.holders_at_totals(p_max int, p_before bigint, p_token bigint)
returns setof sluice.holder
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_share float8 := random();
begin
  return query
  with shut as materialized (
    select * from sluice.shut_kinds(sluice.random_gate(p_token))
  ), idle as materialized (
    select l.id from sluice.stream l
    where l.laned
      and exists (select from sluice.ready r where r.stream = l.id)
      and not sluice.is_open(l.id, 0, true)
  )
  select 'gated', x.*
  from shut k
  cross join lateral (
    select g.rank, g.turn from sluice.gated g
    where g.stream = k.stream and g.gate = k.gate
    order by g.rank desc, g.turn desc
    limit 1) last
  cross join lateral (
    select g.turn from sluice.gated g
    where g.stream = k.stream and g.gate = k.gate and g.rank = last.rank
    order by g.turn
    limit 1) first
  cross join lateral (values (last.turn), (first.turn + (v_share * (last.turn - first.turn))::bigint)) most(turn)
  cross join lateral (
    select g.ctid, g.id, g.stream, g.gate, g.rank, g.attempt, g.lanes, 0::bigint, g.turn from sluice.gated g
    where g.stream = k.stream and g.gate = k.gate and (g.rank, g.turn) <= (last.rank, most.turn)
      and g.turn <= p_before and sluice.lane_level(g.lanes[cardinality(g.lanes)]) = sluice.key_level()
    order by g.rank desc, g.turn desc
    limit p_max / 2) x
  union
  select 'ready', x.*
  from idle l
  cross join lateral (
    select r.rank, r.turn from sluice.ready r where r.stream = l.id order by r.rank desc, r.turn desc limit 1) last
  cross join lateral (
    select r.turn from sluice.ready r where r.stream = l.id and r.rank = last.rank order by r.turn limit 1) first
  cross join lateral (values (last.turn), (first.turn + (v_share * (last.turn - first.turn))::bigint)) most(turn)
  cross join lateral (
    select r.ctid, r.id, r.stream, 0, r.rank, r.attempt, r.lanes, 0::bigint, r.turn from sluice.ready r
    where r.stream = l.id and (r.rank, r.turn) <= (last.rank, most.turn)
      and r.turn <= p_before and sluice.lane_level(r.lanes[cardinality(r.lanes)]) = sluice.key_level()
    order by r.rank desc, r.turn desc
    limit p_max / 2) x;
end $$;
