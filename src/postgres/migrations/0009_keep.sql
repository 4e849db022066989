-- What must happen without anyone asking. Any process may call these at any time.

-- Scheduled tasks whose time has come join their next lane, or become ready. next_ms: how long until
-- the next one is due, null if none is.
create function sluice.due(p_max int, out moved int, out next_ms bigint)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_now timestamptz := sluice.clock(); v_streams int[]; v_stopped bigint[];
begin
  with gone as (
    delete from sluice.scheduled where ctid = any (array(
      select ctid from sluice.scheduled where run_at <= v_now order by run_at, id limit p_max for update skip locked)) returning *
  ), fate as materialized (
    select g.id, g.attempt, g.held, t.stream, t.rank, t.gate, t.lanes, t.lane_limits, exists (select from sluice.stop z where z.id = g.id) as stopped
    from gone g cross join lateral (select * from sluice.task where id = g.id limit 1) t
  ), history as (
    insert into sluice.done (id, state, attempt, finished_at, outcome)
    select id, 'c', attempt, v_now, json_build_object('reason', (select s.reason from sluice.stop s where s.id = fate.id limit 1)) from fate where stopped
  ), frees as (
    insert into sluice.dirty (lane, limit_id, freed) select l, 0, count(*) from fate, unnest(lanes[1:held]) l where stopped group by l
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, lanes) select id, stream, rank, attempt, lanes from fate
    where not stopped and held >= coalesce(cardinality(lanes), 0) and gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, lanes) select id, stream, gate, rank, attempt, lanes from fate
    where not stopped and held >= coalesce(cardinality(lanes), 0) and gate <> 0
  ), to_wait as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, attempt, held, stream, gate, lanes, lane_limits
    from fate where not stopped and held < cardinality(lanes)
  ), joins as (
    insert into sluice.dirty (lane, limit_id) select lanes[held + 1], max(lane_limits[held + 1]) from fate where not stopped and held < cardinality(lanes) group by 1
  )
  select count(*), array_agg(distinct stream), array_agg(id) filter (where stopped) into moved, v_streams, v_stopped from fate;
  if v_stopped is not null then
    delete from sluice.stop where id = any (v_stopped);
    perform sluice.tell_awaited(array(select distinct id from sluice.awaited where id = any (v_stopped)));
    if exists (select from sluice.workflow_run where finished_at is null) then perform sluice.workflow_ended_elsewhere(v_stopped, array_fill('c'::"char", array[cardinality(v_stopped)])); end if;
  end if;
  if v_streams is not null and exists (select from sluice.worker where asleep) then perform sluice.ring(array[x], moved) from unnest(v_streams) x; end if;
  next_ms := (select greatest(0, ceil(extract(epoch from run_at - v_now) * 1000)) from sluice.scheduled where run_at > v_now order by run_at limit 1);
end $$;

-- History older than its time. The table is swept by blocks, from where the last call of any process
-- left off: every turn of 5 s takes its share, so that the whole table is seen every 10 minutes, in
-- steps of at most 128 blocks (1 MB). rested: this turn's share is done, or somebody else is at it.
create function sluice.prune_done(p_succeeded_ms bigint, p_failed_ms bigint, p_cancelled_ms bigint, out pruned int, out rested boolean)
language plpgsql as $$
declare
  v sluice.sweep; v_now timestamptz := sluice.clock(); v_blocks int;
  v_total bigint := pg_relation_size('sluice.done') / current_setting('block_size')::int;
begin
  pruned := 0; rested := true;
  select * into v from sluice.sweep for update skip locked;
  if not found then return; end if;
  if v.turn_at <= v_now - interval '5 seconds' then v.turn_at := v_now; v.due := greatest(128, v_total / 120); end if;
  if v.due <= 0 then return; end if;
  if v.block >= v_total then v.block := 0; end if;
  v_blocks := least(v.due, 128);
  with gone as (
    delete from sluice.done where ctid = any (array(
      select d.ctid from sluice.done d where d.ctid >= format('(%s,0)', v.block)::tid and d.ctid < format('(%s,0)', v.block + v_blocks)::tid
        and d.finished_at < v_now - case d.state when 's' then p_succeeded_ms when 'f' then p_failed_ms else p_cancelled_ms end * interval '1 millisecond'
        and not exists (select from sluice.block b where b.id = d.id)
        -- guard: members are pruned with their run -> test/postgres/workflow/keep.test.ts: "what belongs to a run is pruned with it and not before"
        and not exists (select from sluice.workflow_task w where w.id = d.id) for update of d skip locked)) returning id
  ), tasks as (
    delete from sluice.task where id = any (array(select id from gone))
  )
  select count(*) into pruned from gone;
  v.due := v.due - v_blocks;
  rested := v.due <= 0;
  update sluice.sweep set block = v.block + v_blocks, due = v.due, turn_at = v.turn_at;
end $$;

-- Notes that have served: idempotency keys and waits whose time is over, stops of tasks that ended,
-- slots that came back to a limit which was removed.
create function sluice.prune_notes(p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_n int; v_now timestamptz := sluice.clock();
begin
  delete from sluice.awaited where until < v_now;
  delete from sluice.stop s where not exists (select from sluice.task t where t.id = s.id) or exists (select from sluice.done d where d.id = s.id);
  delete from sluice.crash c where not exists (select from sluice.task t where t.id = c.id) or exists (select from sluice.done d where d.id = c.id);
  delete from sluice.credit c where not exists (select from sluice.gate g where g.id = c.gate);
  delete from sluice.idempotency where ctid = any (array(
    select ctid from sluice.idempotency where expires_at < v_now order by expires_at limit p_max for update skip locked));
  get diagnostics v_n = row_count;
  return v_n;
end $$;

-- Tasks with limits in a stream that no live worker serves give back their slots and leave the line,
-- keeping only their order key's: a type that is not deployed yet must not starve its tenants.
create function sluice.demote(p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_streams int[]; v_n int;
begin
  v_streams := array(select s.id from sluice.stream s where s.laned
    and not exists (select from sluice.worker w where w.streams @> array[s.id] and w.expires_at > sluice.clock()));
  if v_streams = '{}' then return 0; end if;
  update sluice.stream set unserved = true where id = any (array(
    select s.id from sluice.stream s where s.id = any (v_streams) and not s.unserved order by s.id for update));
  with chosen as materialized (
    select 'r' as source, x.tid from unnest(v_streams) s(id) cross join lateral (
      select r.ctid as tid from sluice.ready r where r.stream = s.id and r.lanes[cardinality(r.lanes)] >> 60 > 1
      order by r.rank, r.id limit p_max for update skip locked) x
    union all
    select 'g', x.tid from unnest(v_streams) s(id) cross join lateral (
      select g.ctid as tid from sluice.gated g where g.stream = s.id and g.lanes[cardinality(g.lanes)] >> 60 > 1
      order by g.gate, g.rank, g.id limit p_max for update skip locked) x
  ), from_ready as (
    delete from sluice.ready where ctid = any (array(select tid from chosen where source = 'r')) returning id, stream, attempt, lanes
  ), from_gated as (
    delete from sluice.gated where ctid = any (array(select tid from chosen where source = 'g')) returning id, stream, attempt, lanes
  ), gone as materialized (
    select *, case when lanes[1] >> 60 = 1 then 1 else 0 end as held from (select * from from_ready union all select * from from_gated) x
  ), parked as (
    insert into sluice.park (id, stream, attempt, held) select id, stream, attempt, held from gone
  ), notes as (
    insert into sluice.dirty (lane, limit_id, freed) select l, 0, count(*) from gone cross join lateral unnest(lanes[held + 1:]) l group by l
  )
  select count(*) into v_n from gone;
  return v_n;
end $$;

-- Parked tasks of streams that are served again join their next lane.
create function sluice.unpark(p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_n int;
begin
  update sluice.stream set unserved = false where id = any (array(
    select s.id from sluice.stream s where s.unserved
      and exists (select from sluice.worker w where w.streams @> array[s.id] and w.expires_at > sluice.clock()) order by s.id for update));
  with gone as (
    delete from sluice.park where ctid = any (array(
      select x.tid from (select distinct unnest(streams) as id from sluice.worker where expires_at > sluice.clock()) s
      cross join lateral (select p.ctid as tid from sluice.park p where p.stream = s.id order by p.id limit p_max for update skip locked) x)) returning *
  ), back as materialized (
    select t.*, g.attempt, g.held from gone g cross join lateral (select * from sluice.task where id = g.id limit 1) t
  ), waits as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, attempt, held, stream, gate, lanes, lane_limits from back
  ), notes as (
    insert into sluice.dirty (lane, limit_id) select lanes[held + 1], max(lane_limits[held + 1]) from back group by 1
  )
  select count(*) into v_n from back;
  return v_n;
end $$;

-- Lanes that nobody who claims has looked at, limits that were lowered, streams that nobody serves.
create function sluice.keep_lanes(p_max int) returns int language plpgsql as $$
declare v_n int := 0;
begin
  perform sluice.barrier_shared();
  if exists (select from sluice.lowered) then perform sluice.shed(); end if;
  if exists (select from sluice.stream where laned) then v_n := sluice.demote(p_max); end if;
  if exists (select from sluice.park) then v_n := v_n + sluice.unpark(p_max); end if;
  return v_n + sluice.admit_dirty(p_max);
end $$;
