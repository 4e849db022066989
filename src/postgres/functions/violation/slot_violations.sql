-- Violations of lanes and gates: counters that differ from the holders of their slots, waiters that nothing will wake.
create or replace function sluice.slot_violations()
returns table (what text, id bigint, used bigint, cap bigint, held bigint) language sql stable as $$
  with holder as (
    select lane, count(*) as n
    from (
      select lanes as l from sluice.ready
      union all select lanes from sluice.gated
      union all select lanes from sluice.running
      union all select lanes from sluice.suspect
      union all select lanes[1:held] from sluice.waiting
      union all select array[lane] from sluice.block
      union all select t.lanes[1:s.held] from sluice.scheduled s join sluice.task t using (id) where s.held > 0
      union all select t.lanes[1:p.held] from sluice.parked p join sluice.task t using (id) where p.held > 0
      union all select t.lanes[1:p.held] from sluice.parent p join sluice.task t using (id) where p.held > 0
    ) x, unnest(x.l) lane
    group by lane
  ), freed as (
    select lane, sum(dirty.freed) as n from sluice.dirty where dirty.freed > 0 group by lane
  ), expected as (
    select coalesce(h.lane, f.lane) as lane, coalesce(h.n, 0) + coalesce(f.n, 0) as n
    from holder h
    full join freed f on f.lane = h.lane
  )
  select 'slots differ from holders', coalesce(l.id, e.lane), l.used::bigint,
    sluice.cap_of(l.cap, l.limit_id)::bigint, coalesce(e.n, 0)::bigint
  from sluice.lane l
  full join expected e on e.lane = l.id
  where coalesce(l.used, 0) <> coalesce(e.n, 0)
  union all
  select 'order key held twice', l.id, l.used, l.cap, null
  from sluice.lane l
  where sluice.lane_level(l.id) = sluice.order_level() and l.used > 1
  union all
  select 'waiter without a waker', w.lane, l.used, l.cap, null
  from (select distinct lane from sluice.waiting) w
  left join sluice.lane l on l.id = w.lane
  where (l.id is null or l.used < case
      when sluice.lane_level(w.lane) = sluice.window_level() then sluice.lane_cap(w.lane, sluice.window_limit())
      else sluice.cap_of(l.cap, l.limit_id)
    end)
    and not exists (select from sluice.dirty d where d.lane = w.lane)
    and not exists (select from sluice.postponed p where p.lane = w.lane)
    and not exists (select from sluice.changed c where c.limit_id = l.limit_id and c.after < l.id)
  union all
  select 'gate differs from holders', g.id, g.used, g.cap, r.n
  from sluice.gate g
  cross join lateral (
    select (select count(*) from sluice.running where g.id = any (sluice.gates_of(running.gate) || stream_gate))
      + coalesce((select sum(n) from sluice.credit c where c.gate = g.id), 0) as n) r
  where g.used <> r.n
  union all
  select 'a window is left without its node', l.id, l.used, l.cap, null
  from sluice.lane l
  where sluice.lane_level(l.id) = sluice.window_level()
    and not exists (select from sluice.dirty d where d.lane = l.id)
    and not exists (select from sluice.postponed p where p.lane = l.id)
    and not exists (select from sluice.workflow_node n where n.lane = l.id and n.state in ('placing', 'running'))
$$;
