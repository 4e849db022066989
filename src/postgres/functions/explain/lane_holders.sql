-- Returns up to p_max tasks that hold a slot of a lane, from where most of them are to where few are.
create or replace function sluice.lane_holders(p_lane bigint, p_max int)
returns table (id bigint, state text, since timestamptz, worker bigint)
language sql stable set enable_seqscan = on set jit = off set max_parallel_workers_per_gather = 0 as $$
  select *
  from (
    (select r.id, 'running', r.started_at, r.worker from sluice.running r
      where r.lanes @> array[p_lane]
      order by r.started_at, r.id
      limit p_max)
    union all
    select b.id, 'failed', d.finished_at, null
    from sluice.block b
    left join lateral (select d.finished_at from sluice.done d where d.id = b.id limit 1) d on true
    where b.lane = p_lane
    union all
    select x.id, 'ready', null, x.reserved_by from sluice.suspect x where x.lanes @> array[p_lane]
    -- Tasks that have left the line keep the slot of their order key only.
    union all
    select p.id, 'waiting', null, null
    from sluice.parent p
    cross join lateral (select t.lanes from sluice.task t where t.id = p.id limit 1) t
    where sluice.lane_level(p_lane) = sluice.order_level() and p.held > 0 and t.lanes[1] = p_lane
    union all
    select p.id, 'waiting', null, null
    from sluice.parked p
    cross join lateral (select t.lanes from sluice.task t where t.id = p.id limit 1) t
    where sluice.lane_level(p_lane) = sluice.order_level() and p.held > 0 and t.lanes[1] = p_lane
    union all
    select s.id, 'scheduled', null, null
    from sluice.scheduled s
    cross join lateral (select t.lanes from sluice.task t where t.id = s.id limit 1) t
    where sluice.lane_level(p_lane) = sluice.order_level() and s.held > 0 and t.lanes[1] = p_lane
    union all
    select g.id, 'waiting', null, null from sluice.gated g where g.lanes @> array[p_lane]
    union all
    select w.id, 'waiting', null, null from sluice.waiting w
    where w.held > 0 and p_lane = any (w.lanes[1:w.held])
    union all
    select r.id, 'ready', null, null from sluice.ready r where r.lanes @> array[p_lane]
  ) h
  limit p_max
$$;
