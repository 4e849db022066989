-- Returns tasks that do not run and whose last lane this is, the last ones first, by index (ready_holder,
-- gated_holder).
create or replace function sluice.shed_last(p_lane bigint, p_max int)
returns table (source text, tid tid, rank smallint, id bigint, attempt smallint)
language sql stable set enable_seqscan = off set enable_bitmapscan = off as $$
  (select 'ready', r.ctid, r.rank, r.id, r.attempt
    from sluice.ready r
    where r.lanes[cardinality(r.lanes)] = p_lane
      and sluice.lane_level(r.lanes[cardinality(r.lanes)]) > sluice.order_level()
    order by r.rank desc, r.id desc
    limit p_max)
  union all
  (select 'gated', g.ctid, g.rank, g.id, g.attempt
    from sluice.gated g
    where g.lanes[cardinality(g.lanes)] = p_lane
      and sluice.lane_level(g.lanes[cardinality(g.lanes)]) > sluice.order_level()
    order by g.rank desc, g.id desc
    limit p_max)
$$;
