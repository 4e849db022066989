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
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes) select id, stream, rank, attempt, sluice.own_turn(id), lanes from fate
    where not stopped and held >= coalesce(cardinality(lanes), 0) and gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes) select id, stream, gate, rank, attempt, sluice.own_turn(id), lanes from fate
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
    if exists (select from sluice.workflow_active) then perform sluice.workflow_ended_elsewhere(v_stopped, array_fill('c'::"char", array[cardinality(v_stopped)])); end if;
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

-- Forgets groups: transient limits that no task refers to, live or in history, no type, no schedule and no operator,
-- and that nobody has declared for p_unused_ms. One call looks at the next p_max limits after p_after; after: where to
-- go on, 0 when all have had their turn. A client that uses a group declares it again every 15 minutes, so it does not
-- meet one that was forgotten; if it does, its enqueue is refused with unknown_limit and it declares the group again.
--
-- Locks, in this order: the barrier, shared, so that no number is being changed; the groups' advisory locks, tried (see
-- hold_limits); rows of limits and of gate, skipped when locked. It waits for nothing once it has the barrier. The
-- advisory lock proves that no open transaction has enqueued a task of the group; what was committed before is seen by
-- the statement that comes after the lock.
create function sluice.forget_limits(p_after int, p_max int, p_unused_ms bigint, out after int, out forgotten int)
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_now timestamptz := sluice.clock(); v_ids int[]; v_unused int[]; v_old int[];
begin
  forgotten := 0;
  perform sluice.barrier_shared();
  v_ids := array(select l.id from sluice.limits l where l.id > p_after order by l.id limit p_max);
  after := case when cardinality(v_ids) = p_max then v_ids[p_max] else 0 end;
  v_unused := sluice.unused_limits(v_ids);
  update sluice.limits set unused_since = case when id = any (v_unused) then v_now end where id = any (array(
    select l.id from sluice.limits l where l.id = any (v_ids) and l.transient
      and (l.unused_since is null) = (l.id = any (v_unused)) order by l.id for update skip locked));
  v_old := array(select l.id from sluice.limits l where l.id = any (v_unused)
    and l.unused_since < v_now - p_unused_ms * interval '1 millisecond');
  if v_old = '{}' then return; end if;
  v_old := array(select o from unnest(v_old) o where sluice.limit_bucket(o) in (
    select b.bucket from (select distinct sluice.limit_bucket(x) as bucket from unnest(v_old) x) b
    where pg_try_advisory_xact_lock('sluice.limits'::regclass::oid::int, b.bucket)));
  -- guard: a group is looked at again under its lock -> test/postgres/forget.test.ts: "a group whose task is committed while the keeper looks is not forgotten"
  v_old := sluice.unused_limits(v_old);
  v_old := array(select l.id from sluice.limits l where l.id = any (v_old) and l.unused_since is not null
    order by l.id for update skip locked);
  v_old := array(select g.id from sluice.gate g where g.id = any (v_old) order by g.id for update skip locked);
  if v_old = '{}' then return; end if;
  delete from sluice.limits where id = any (v_old);
  delete from sluice.gate where id = any (v_old);
  delete from sluice.credit where gate = any (v_old);
  delete from sluice.gate_stream where gate = any (v_old);
  perform sluice.drop_sets(v_old);
  forgotten := cardinality(v_old);
end $$;

-- Sets that contain one of these groups. The caller holds the groups' advisory locks, so nobody is using one of them.
create function sluice.drop_sets(p_totals int[]) returns void language plpgsql set enable_seqscan = off as $$
begin
  with unused as (
    delete from sluice.gate_set s where s.id in (select m.gate from sluice.gate_member m where m.total = any (p_totals))
    returning s.id, s.gates
  )
  delete from sluice.gate_member m using unused u where m.gate = u.id and m.total = any (u.gates);
end $$;

-- Those of these limits that could be forgotten, as far as committed transactions show.
create function sluice.unused_limits(p_ids int[]) returns int[]
language plpgsql volatile
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  return array(
    select l.id from sluice.limits l where l.id = any (p_ids) and l.transient
      and l.per_key_declared is null and l.total_override is null
      -- guard: a group with tasks is not forgotten -> test/postgres/forget.test.ts: "a group is forgotten only when no task refers to it, live or in history"
      and not exists (select from sluice.task t where t.gate = l.id and t.gate <> 0)
      -- Of a total in very many sets, not all are looked at: it waits until some of them have gone with other groups.
      and case
        when (select count(*) from (select from sluice.gate_member m where m.total = l.id limit 1001) m) > 1000
        then false else not exists (select from sluice.gate_member m cross join lateral (
          select from sluice.task t where t.gate = m.gate and t.gate <> 0 limit 1) t where m.total = l.id) end
      and l.id not in (select c.gate from sluice.contract c)
      and l.id not in (select u.id from sluice.contract c cross join lateral unnest(c.limit_ids) u(id))
      and l.name not in (select n from sluice.schedule s cross join lateral unnest(s.limit_names) n)
    order by l.id);
end $$;

-- Kinds of tasks that nobody can run at all for now: in a stream that no live worker serves or that is paused, or at a
-- total of 0. Only those whose tasks may hold slots of keys.
create function sluice.closed_kinds() returns table (stream int, gate int) language sql stable as $$
  select s.id, 0 from sluice.stream s where s.laned and (s.paused or s.gate in (select g.id from sluice.gate g where g.cap = 0)
    or not exists (select from sluice.worker w where w.streams @> array[s.id] and w.expires_at > sluice.clock()))
  union
  select gs.stream, x.gate from sluice.gate g join sluice.gate_stream gs on gs.gate = g.id join sluice.stream s on s.id = gs.stream and s.laned
  cross join lateral (select g.id as gate union all select m.gate from sluice.gate_member m where m.total = g.id) x
  where g.cap = 0
$$;

-- Tasks of those give back their slots and leave the line, keeping only their order key's: a type that is not deployed yet,
-- or a queue that was paused, must not starve its tenants.
create function sluice.demote(p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_streams int[]; v_gates int[]; v_n int;
begin
  select array_agg(k.stream), array_agg(k.gate) into v_streams, v_gates from sluice.closed_kinds() k;
  -- guard: closed kinds keep no slots -> test/postgres/yield.test.ts: "tasks that a paused queue or a number of 0 stops give their key's slots to others: %s"
  if v_streams is null then return 0; end if;
  update sluice.stream set unserved = true where id = any (array(
    select s.id from sluice.stream s where s.id = any (v_streams) and not s.unserved
      and not exists (select from sluice.worker w where w.streams @> array[s.id] and w.expires_at > sluice.clock()) order by s.id for update));
  -- In order, like all that several keepers may insert at once.
  insert into sluice.stuck (stream, gate) select k.stream, k.gate from unnest(v_streams, v_gates) k(stream, gate) order by 1, 2 on conflict do nothing;
  with chosen as materialized (
    select 'r' as source, x.tid from unnest(v_streams, v_gates) k(stream, gate) cross join lateral (
      select r.ctid as tid from sluice.ready r where k.gate = 0 and r.stream = k.stream and r.lanes[cardinality(r.lanes)] >> 60 > 1
      order by r.rank, r.turn limit p_max for update skip locked) x
    union all
    select 'g', x.tid from unnest(v_streams, v_gates) k(stream, gate) cross join lateral (
      select g.ctid as tid from sluice.gated g where k.gate = 0 and g.stream = k.stream and g.lanes[cardinality(g.lanes)] >> 60 > 1
      order by g.gate, g.rank, g.turn limit p_max for update skip locked) x
    union all
    select 'g', x.tid from unnest(v_streams, v_gates) k(stream, gate) cross join lateral (
      select g.ctid as tid from sluice.gated g where k.gate <> 0 and g.stream = k.stream and g.gate = k.gate and g.lanes[cardinality(g.lanes)] >> 60 > 1
      order by g.rank, g.turn limit p_max for update skip locked) x
  ), from_ready as (
    delete from sluice.ready where ctid = any (array(select tid from chosen where source = 'r')) returning id, stream, 0 as gate, rank, attempt, lanes, turn
  ), from_gated as (
    delete from sluice.gated where ctid = any (array(select tid from chosen where source = 'g')) returning id, stream, gate, rank, attempt, lanes, turn
  ), gone as materialized (
    select *, case when lanes[1] >> 60 = 1 then 1 else 0 end as held from (select * from from_ready union all select * from from_gated) x
  ), parked as (
    insert into sluice.park (id, stream, gate, rank, attempt, held, turn) select id, stream, gate, rank, attempt, held, turn from gone
  ), notes as (
    insert into sluice.dirty (lane, limit_id, freed) select l, 0, count(*) from gone cross join lateral unnest(lanes[held + 1:]) l group by l
  )
  select count(*) into v_n from gone;
  return v_n;
end $$;

-- Parked tasks whose kind can run again join their next lane, at their old place in its line.
create function sluice.unpark(p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_n int;
begin
  perform sluice.unstick();
  update sluice.stream set unserved = false where id = any (array(
    select s.id from sluice.stream s where s.unserved
      and exists (select from sluice.worker w where w.streams @> array[s.id] and w.expires_at > sluice.clock()) order by s.id for update));
  with gone as (
    delete from sluice.park where ctid = any (array(
      select x.tid from (select distinct unnest(streams) as id from sluice.worker where expires_at > sluice.clock()) s
      cross join lateral (select p.ctid as tid from sluice.park p where p.stream = s.id
        and not exists (select from sluice.stuck k where k.stream = s.id and k.gate = any (array[0, p.gate]) and k.lane = any (array[0, p.lane]))
        order by p.gate, p.rank, p.id limit p_max for update skip locked) x)) returning *
  ), back as materialized (
    select t.*, g.attempt, g.held, g.turn from gone g cross join lateral (select * from sluice.task where id = g.id limit 1) t
  ), waits as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, turn)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, attempt, held, stream, gate, lanes, lane_limits, turn from back
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
  if exists (select from sluice.changed) then v_n := sluice.follow_limit(p_max); end if;
  if exists (select from sluice.lowered) then select v_n + s.shed + s.cleared into v_n from sluice.shed() s; end if;
  if exists (select from sluice.stream where laned) then v_n := v_n + sluice.demote(p_max); end if;
  if exists (select from sluice.park) or exists (select from sluice.stuck) then v_n := v_n + sluice.unpark(p_max); end if;
  if exists (select from sluice.stream where laned) then v_n := v_n + sluice.yield(p_max); end if;
  -- After kinds may have come unstuck: what waited for that is looked at now.
  if exists (select from sluice.postponed) then perform sluice.recall(p_max); end if;
  v_n := v_n + sluice.admit_dirty(p_max);
  if exists (select from sluice.stream where many) then
    perform sluice.note_kinds((random() * 1000000000)::bigint);
  end if;
  perform sluice.keep_slots();
  return v_n;
end $$;

-- Which of all workers does what this file has: the leader. A hint that saves the others the work, no fence: every verb
-- here is safe for any number of callers. until: a leader that has not looked again by then is taken for gone.
-- next_at: when the leader looks next. It may look earlier, but never puts this off: see look_by.
-- Its row lock is the last that its transaction takes, and is held for no other statement.
create table sluice.keeper (
  one boolean primary key default true check (one),
  leader bigint not null default 0,
  until timestamptz not null default '-infinity',
  next_at timestamptz not null default '-infinity'
) with (fillfactor = 10);

-- Something is to be looked at by p_at: a task or a timer is due then. Wakes the leader unless it will look in between
-- anyway, so that a stream of scheduled tasks sends few notifications. A look that begins within 20 ms is not relied on:
-- it may not see what this transaction has written. A leader looks at least every 2.5 s. A transaction that stays open
-- until after p_at may be found late, by the next look.
create function sluice.look_by(p_at timestamptz) returns void language plpgsql as $$
declare v_now timestamptz := sluice.clock();
begin
  -- In two parts, or the name of the schema would be quoted within it.
  -- guard: a look can be left out too -> test/postgres/notes.test.ts: "with sluice.ring = off an enqueue notifies nobody, delayed or not"
  if current_setting('sluice' || '.ring', true) = 'off' then return; end if;
  if p_at > v_now + interval '3 seconds' then return; end if;
  perform pg_notify('sluice', 'keep:' || k.leader) from sluice.keeper k
  where k.until > v_now and not (k.next_at > v_now + interval '20 milliseconds' and k.next_at <= p_at);
end $$;

-- A look at all that must happen without anyone asking: what there is to do now, and when to look again. p_keeper: the
-- caller, who becomes the leader if there is none. How long a look may be put off: p_quiet_ms if there is no work,
-- p_live_ms if there is, p_poll_ms while there is something that waits for the next look.
-- leads: the caller is the leader. live: tasks stand somewhere or run. dead: a lease has run out. due, ticks, runs:
-- scheduled tasks, schedules, workflow runs have something to do. flows: there are fan-outs of handlers. ended: there are
-- runs to prune some day. next_ms: when to look again. due_ms: when the next scheduled task is due, null if there is none.
create function sluice.keep_look(p_keeper bigint, p_quiet_ms int, p_live_ms int, p_poll_ms int,
  out leads boolean, out live boolean, out dead boolean, out due boolean, out ticks boolean, out runs boolean,
  out flows boolean, out ended boolean, out next_ms float8, out due_ms float8)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_now timestamptz := sluice.clock(); k sluice.keeper; v_waits boolean; v_next timestamptz; v_due timestamptz;
  v_expires timestamptz; v_tick timestamptz; v_timer timestamptz;
begin
  select * into k from sluice.keeper;
  if not found then
    insert into sluice.keeper default values on conflict do nothing;
    select * into k from sluice.keeper;
  end if;
  -- No leader says more than a few seconds: the clock was set back.
  leads := k.leader = p_keeper or k.until <= v_now or k.until > v_now + interval '10 seconds';
  select exists (select from sluice.worker w where w.expires_at <= v_now),
    (select min(w.expires_at) from sluice.worker w where w.expires_at > v_now),
    exists (select from sluice.scheduled s where s.run_at <= v_now),
    (select s.run_at from sluice.scheduled s where s.run_at > v_now order by s.run_at limit 1),
    exists (select from sluice.ready) or exists (select from sluice.gated) or exists (select from sluice.wait)
      or exists (select from sluice.run) or exists (select from sluice.dirty) or exists (select from sluice.park)
      or exists (select from sluice.suspect) or exists (select from sluice.lowered) or exists (select from sluice.changed)
  into dead, v_expires, due, v_due, live;
  if leads then
    select exists (select from sluice.schedule s where s.due_at <= v_now),
      (select s.due_at from sluice.schedule s where s.due_at > v_now order by s.due_at limit 1),
      exists (select from sluice.workflow_timer t where t.due_at <= v_now),
      (select t.due_at from sluice.workflow_timer t where t.due_at > v_now order by t.due_at limit 1),
      exists (select from sluice.workflow_note) or exists (select from sluice.workflow_halt)
        or exists (select from sluice.workflow_again),
      exists (select from sluice.parent) or exists (select from sluice.workflow_orphan)
        or exists (select from sluice.workflow_lead) or exists (
          select from sluice.workflow_run r where r.parent is not null and r.finished_at is null and not r.stopping),
      exists (select from sluice.workflow_run r where r.parent is null and r.finished_at is not null)
        or exists (select from sluice.workflow_run r where r.parent is not null and r.finished_at is not null)
    into ticks, v_tick, runs, v_timer, v_waits, flows, ended;
    runs := runs or v_waits or exists (select from sluice.workflow_unplaced)
      or flows and exists (select from sluice.stop s join sluice.parent p on p.id = s.id);
    v_next := v_now + case when due or v_waits then p_poll_ms when live or runs or flows then p_live_ms else p_quiet_ms end
      * interval '1 millisecond';
    v_next := least(v_next, v_due, v_tick, v_timer);
    -- guard: a promised look is not put off -> test/postgres/keeper.test.ts: "a look that comes early does not put off the look that was promised"
    if k.leader = p_keeper and k.next_at > v_now + interval '5 milliseconds' then v_next := least(v_next, k.next_at); end if;
    -- Of several who find no leader the first becomes it: the others wait for the row and find it taken.
    update sluice.keeper x set leader = p_keeper, next_at = v_next, until = v_next + interval '1 second'
    where x.leader = p_keeper or x.until <= v_now or x.until > v_now + interval '10 seconds';
    leads := found;
  elsif live and k.next_at > v_now + 1.5 * p_live_ms * interval '1 millisecond' then
    -- The leader saw no work, and there is some now.
    perform sluice.look_by(v_now);
  end if;
  if not leads then
    ticks := false; runs := false; flows := false; ended := false;
    v_next := v_now + p_quiet_ms * interval '1 millisecond';
  end if;
  -- A lease that ends is looked at by all of them: no leader is needed to recover what its worker held.
  next_ms := greatest(0, ceil(extract(epoch from least(v_next, v_expires) - v_now) * 1000));
  due_ms := ceil(extract(epoch from v_due - v_now) * 1000);
end $$;

-- The leader leaves, and another takes over at once.
create function sluice.keep_leave(p_keeper bigint) returns void language plpgsql as $$
begin
  update sluice.keeper set until = '-infinity', next_at = '-infinity' where leader = p_keeper;
  if found then perform pg_notify('sluice', 'keep:all'); end if;
end $$;
