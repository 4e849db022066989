-- What holds the tasks of a queue: how many by each reason, and one of them to ask more about. Everybody is counted once, by
-- what explain would name first; who is due, or about to join its line again, as next.
-- Of each type, or where tables do not know types of the queue, at most 100,000 rows are counted; `more` tells where
-- there may be more. The order of scans is kept, so that one who asks again hears the same.

create or replace function sluice.explain_queue(p_queue text) returns json language plpgsql stable set jit = off set max_parallel_workers_per_gather = 0 set synchronize_seqscans = off as $$
declare
  v_streams int[] := array(select s.id from sluice.stream s where s.queue = p_queue order by s.id); v_most int := 100000; v_now timestamptz := sluice.clock();
  v_lowered boolean := exists (select from sluice.lowered); v_found json[]; v_running json; w record;
begin
  if not exists (select from sluice.queue q where q.name = p_queue) then
    perform sluice.refuse('unknown_queue', format('there is no queue named %L; there are %s', p_queue,
      coalesce((select string_agg(quote_literal(q.name), ', ' order by q.name) from (select name from sluice.queue order by name limit 20) q), 'none yet'))); end if;
  select * into w from sluice.explain_workers(v_streams);

  with stream as materialized (
    -- Why nobody claims of it, if nobody does.
    select s.id, s.type, s.gate, x.live > 0 as served, case when s.paused then 'paused' when x.live = 0 then 'noWorker' when x.available > 0 then null when x.silent > 0 then 'silent' when x.stopped > 0 then 'pressure' else 'busy' end as held_by
    from sluice.stream s cross join lateral sluice.explain_workers(array[s.id]) x where s.id = any (v_streams)
  ), line as materialized (
    -- Through their lanes. over: the lane of which they hold a slot above a number that was lowered.
    select s.id as stream, y.gate, y.over, count(*) as n, min(y.id) as id, sum(count(*)) over (partition by s.id) >= v_most as cut from stream s
    cross join lateral (select 0 as gate, r.id, case when v_lowered then r.lanes[sluice.over_lane(r.lanes)] end as over from sluice.ready r where r.stream = s.id order by r.rank, r.turn limit v_most) y
    group by s.id, y.gate, y.over
    union all
    select s.id, y.gate, y.over, count(*), min(y.id), sum(count(*)) over (partition by s.id) >= v_most from stream s
    cross join lateral (select g.gate, g.id, case when v_lowered then g.lanes[sluice.over_lane(g.lanes)] end as over from sluice.gated g where g.stream = s.id order by g.gate, g.rank, g.turn limit v_most) y
    group by s.id, y.gate, y.over
    union all
    select c.stream, t.gate, null, 1, c.id, false from sluice.suspect c cross join lateral (select k.gate from sluice.task k where k.id = c.id limit 1) t where c.stream = any (v_streams)
  ), given_back as materialized (
    select d.lane, sum(d.freed) as n from sluice.dirty d where d.freed > 0 group by d.lane
  ), waiting as materialized (
    select stream, lane, place, id, lane_limits[held + 1] as limit_id from sluice.waiting where stream = any (v_streams) limit v_most
  ), at_lane as materialized (
    select y.lane, y.limit_id, case when y.lane >> 60 = 2 then sluice.lane_cap(y.lane, -2) else coalesce(l.cap, sluice.lane_cap(y.lane, y.limit_id)) end::bigint - coalesce(l.used, 0) + coalesce(g.n, 0) as free
    from (select distinct lane, limit_id from waiting) y left join sluice.lane l on l.id = y.lane left join given_back g on g.lane = y.lane
  ), stood as (
    -- The first of a lane have what is free of it.
    select y.stream, y.lane, y.limit_id, y.i <= l.free as through, count(*) as n, min(y.id) as id
    from (select x.*, row_number() over (partition by x.lane order by x.place, x.id) as i from waiting x) y join at_lane l on l.lane = y.lane and l.limit_id = y.limit_id group by 1, 2, 3, 4
  ), blocked as materialized (
    select b.lane from sluice.block b
  ), later as materialized (
    select t.stream, c.id, c.run_at from sluice.scheduled c join sluice.task t on t.id = c.id where t.stream = any (v_streams) limit v_most
  ), held as (
    select s.type, coalesce(case when l.over is not null then case when l.over >> 60 = 2 then sluice.explain_window(l.over) else 'limit' end end, case when f.id is not null then 'limit' end,
        case when exists (select from sluice.suspect c where c.id = l.id) and s.held_by is distinct from 'paused' and s.held_by is distinct from 'noWorker' then 'suspect' end, s.held_by, 'next') as kind,
      case when l.over is null then f.id else (select nullif(greatest(k.limit_id, 0), 0) from sluice.lane k where k.id = l.over) end as limit_id,
      case when l.over is null then f.cap end as slots, case when l.over is null then f.used end as used, l.n, l.id, l.cut, 0 as keys, null::timestamptz as until
    from line l join stream s on s.id = l.stream
    left join lateral sluice.full_total(l.gate, s.gate) f on true
    union all
    select s.type, case when y.through then coalesce(s.held_by, 'next') when y.lane >> 60 = 1 then case when y.lane in (select b.lane from blocked b) then 'blocked' else 'order' end
        when y.lane >> 60 = 3 then 'limit' else sluice.explain_window(y.lane) end,
      case when not y.through then nullif(greatest(y.limit_id, 0), 0) end, null, null, y.n, y.id, (select count(*) from waiting) >= v_most, case when y.through then 0 else 1 end, null
    from stood y join stream s on s.id = y.stream
    union all
    select s.type, case when not s.served then 'noWorker' when f.id is not null then 'limit' else coalesce(s.held_by, 'next') end,
      case when s.served then f.id end, case when s.served then f.cap end, case when s.served then f.used end, x.n, x.id, x.n >= v_most, 0, null from stream s
    cross join lateral (select y.gate, count(*) as n, min(y.id) as id from (select p.gate, p.id from sluice.parked p where p.stream = s.id order by p.gate, p.rank, p.id limit v_most) y group by y.gate) x
    left join lateral sluice.full_total(x.gate, s.gate) f on true
    union all
    select s.type, case when y.sleeps then 'children' else coalesce(s.held_by, 'next') end, null, null, null, count(*), min(y.id), count(*) >= v_most, 0, null
    from (select t.stream, p.id, exists (select from sluice.workflow_run r where r.id = any (p.runs) and r.finished_at is null) as sleeps
      from sluice.parent p join sluice.task t on t.id = p.id where t.stream = any (v_streams) limit v_most) y join stream s on s.id = y.stream group by s.type, y.sleeps, s.held_by
    union all
    select s.type, case when y.run_at > v_now then 'scheduled' else coalesce(s.held_by, 'next') end, null, null, null, count(*), (array_agg(y.id order by y.run_at, y.id))[1], (select count(*) from later) >= v_most, 0, min(y.run_at) filter (where y.run_at > v_now)
    from later y join stream s on s.id = y.stream group by s.type, y.run_at > v_now, s.held_by
  )
  select array_agg(json_build_object('kind', d.kind, 'type', d.type, 'limit', (select l.name from sluice.limits l where l.id = d.limit_id), 'slots', d.slots, 'used', d.used,
    'keys', nullif(d.keys, 0), 'until', d.until, 'count', d.n, 'more', d.cut, 'task', d.id::text) order by d.n desc, d.type, d.kind, d.limit_id) into v_found
  from (select type, kind, limit_id, max(slots) as slots, max(held.used) as used, sum(n)::bigint as n, min(id) as id, bool_or(cut) as cut, sum(keys) as keys, min(until) as until from held group by type, kind, limit_id) d;

  select json_agg(json_build_object('type', s.type, 'count', x.n) order by x.n desc, s.type) into v_running
  from (select t.stream, count(*) as n from sluice.running r cross join lateral (select k.stream from sluice.task k where k.id = r.id limit 1) t group by t.stream) x
  join sluice.stream s on s.id = x.stream where s.queue = p_queue;

  return json_build_object('queue', p_queue, 'at', v_now, 'paused', (select q.paused from sluice.queue q where q.name = p_queue),
    'workers', json_build_object('live', w.live, 'leaving', w.leaving, 'silent', w.silent, 'stopped', w.stopped, 'capacity', w.capacity, 'available', w.available),
    'running', coalesce(v_running, '[]'), 'reasons', coalesce(array_to_json(v_found[:100]), '[]'), 'reasonsLeft', greatest(0, coalesce(cardinality(v_found), 0) - 100));
end $$;
