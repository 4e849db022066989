-- What holds the tasks of a queue: how many by each reason, and one of them to ask more about (see explain).
-- Of each table at most 100,000 rows are counted; `more` tells that there were more.

create function sluice.explain_queue(p_queue text) returns json language plpgsql stable set jit = off set max_parallel_workers_per_gather = 0 as $$
declare v_streams int[] := array(select s.id from sluice.stream s where s.queue = p_queue order by s.id); v_most int := 100000; v_reasons json; v_running json; w record;
begin
  if not exists (select from sluice.queue q where q.name = p_queue) then
    perform sluice.refuse('unknown_queue', format('there is no queue named %L', p_queue)); end if;
  select * into w from sluice.explain_workers(v_streams);

  with stream as materialized (
    -- Why nobody claims of it, if nobody does.
    select s.id, s.type, s.gate, case when s.paused then 'paused' when x.live = 0 then 'noWorker' when x.stopped = x.live then 'pressure' when x.available <= 0 then 'busy' end as held_by
    from sluice.stream s cross join lateral sluice.explain_workers(array[s.id]) x where s.id = any (v_streams)
  ), full_gate as materialized (
    select g.id, g.cap, sluice.gate_used(g.id) as used from sluice.gate g where sluice.gate_used(g.id) >= g.cap
  ), line as materialized (
    select r.stream, 0 as gate, count(*) as n, min(r.id) as id from stream s
    cross join lateral (select y.stream, y.id from sluice.ready y where y.stream = s.id limit v_most) r group by r.stream
    union all
    select g.stream, g.gate, count(*), min(g.id) from stream s
    cross join lateral (select y.stream, y.gate, y.id from sluice.gated y where y.stream = s.id limit v_most) g group by g.stream, g.gate
  ), stood as (
    -- At a total that is full, or before workers.
    select s.type, coalesce(case when f.id is not null then 'limit' end, s.held_by, 'next') as kind, f.id as limit_id, f.cap as slots, f.used, l.n, l.id
    from line l join stream s on s.id = l.stream
    left join lateral (select f.* from full_gate f where f.id = any (sluice.gates_of(l.gate) || s.gate) order by f.id limit 1) f on true
    union all
    select s.type, case x.level when 1 then 'order' when 2 then 'limit' else 'window' end, nullif(greatest(x.limit_id, 0), 0), null, null, x.n, x.id
    from (select y.stream, y.lane >> 60 as level, y.lane_limits[y.held + 1] as limit_id, count(*) as n, min(y.id) as id
      from (select * from sluice.wait where stream = any (v_streams) limit v_most) y group by 1, 2, 3) x join stream s on s.id = x.stream
    union all
    select s.type, 'noWorker', null, null, null, x.n, x.id from stream s
    cross join lateral (select count(*) as n, min(y.id) as id from (select p.id from sluice.park p where p.stream = s.id limit v_most) y) x where x.n > 0
    union all
    select s.type, 'suspect', null, null, null, count(*), min(x.id) from sluice.suspect x join stream s on s.id = x.stream group by s.type
    union all
    select s.type, 'children', null, null, null, count(*), min(x.id) from (select id from sluice.parent limit v_most) x
    cross join lateral (select t.stream from sluice.task t where t.id = x.id limit 1) t join stream s on s.id = t.stream group by s.type
    union all
    -- The first of these is the next.
    select s.type, 'scheduled', null, null, null, count(*), (array_agg(x.id order by x.run_at, x.id))[1] from (select id, run_at from sluice.scheduled order by run_at limit v_most) x
    cross join lateral (select t.stream from sluice.task t where t.id = x.id limit 1) t join stream s on s.id = t.stream group by s.type
  )
  select json_agg(json_build_object('kind', d.kind, 'type', d.type, 'limit', (select l.name from sluice.limits l where l.id = d.limit_id), 'slots', d.slots, 'used', d.used,
    'count', least(d.n, v_most), 'more', d.n >= v_most, 'task', d.id::text) order by d.n desc, d.type, d.kind) into v_reasons
  from (select type, kind, limit_id, max(slots) as slots, max(stood.used) as used, sum(n)::bigint as n, min(id) as id from stood group by type, kind, limit_id) d;

  select json_agg(json_build_object('type', s.type, 'count', x.n) order by x.n desc, s.type) into v_running
  from (select t.stream, count(*) as n from (select id from sluice.run limit v_most) r cross join lateral (select k.stream from sluice.task k where k.id = r.id limit 1) t group by t.stream) x
  join sluice.stream s on s.id = x.stream where s.queue = p_queue;

  return json_build_object('queue', p_queue, 'paused', (select q.paused from sluice.queue q where q.name = p_queue),
    'workers', json_build_object('live', w.live, 'leaving', w.leaving, 'capacity', w.capacity, 'available', w.available, 'stopped', w.stopped),
    'running', coalesce(v_running, '[]'), 'reasons', coalesce(v_reasons, '[]'));
end $$;
