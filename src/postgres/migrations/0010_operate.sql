-- Cancel, retry, look.

-- Append-only as far as lanes go, so it may live in a user's transaction. Per id: 'cancelled',
-- 'asked' (it runs; the worker hears of it with its next heartbeat), 'over', 'unknown', or 'moving'
-- (between two states just now: ask again).
create function sluice.cancel(p_ids bigint[], p_reason text default null) returns table (id bigint, answer text)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare v_left bigint[] := p_ids; v_gone bigint[] := '{}'; v_asked bigint[] := '{}'; v_now timestamptz := sluice.clock(); v_round bigint[]; v_round_asked bigint[];
begin
  for v_try in 1..3 loop
    with target as materialized (
      select t.* from (select distinct unnest(v_left) as id) u
      cross join lateral (select k.id, k.stream, k.rank, k.gate, k.lanes from sluice.task k where k.id = u.id limit 1) t
    ), s as (
      delete from sluice.scheduled where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.scheduled y where y.id = t.id for update skip locked) x)) returning scheduled.id, attempt, held::int
    ), w as (
      delete from sluice.wait where ctid = any (array(select x.tid from target t cross join lateral unnest(t.lanes) l cross join lateral (
        select y.ctid as tid from sluice.wait y where y.lane = l and y.place = sluice.lane_place(l, t.rank) and y.id = t.id for update skip locked) x))
      returning wait.id, attempt, held::int
    ), r as (
      delete from sluice.ready where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.ready y where t.gate = 0 and y.stream = t.stream and y.rank = t.rank and y.id = t.id for update skip locked) x))
      returning ready.id, attempt, coalesce(cardinality(lanes), 0) as held
    ), g as (
      delete from sluice.gated where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.gated y where t.gate <> 0 and y.stream = t.stream and y.gate = t.gate and y.rank = t.rank and y.id = t.id for update skip locked) x))
      returning gated.id, attempt, coalesce(cardinality(lanes), 0) as held
    ), p as (
      delete from sluice.suspect where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.suspect y where y.id = t.id for update skip locked) x))
      returning suspect.id, attempt, coalesce(cardinality(lanes), 0) as held
    ), k as (
      delete from sluice.park where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.park y where y.id = t.id for update skip locked) x)) returning park.id, attempt, held::int
    ), gone as materialized (
      select * from k union all select * from s union all select * from w union all select * from r union all select * from g union all select * from p
    ), history as (
      insert into sluice.done (id, state, attempt, finished_at, outcome)
      select id, 'c', attempt, v_now, json_build_object('reason', p_reason) from gone
    ), frees as (
      insert into sluice.dirty (lane, limit_id, freed) select l, 0, count(*) from gone join target t on t.id = gone.id
      cross join lateral unnest(t.lanes[1:gone.held]) l group by l
    ), running as materialized (
      select y.id from target t cross join lateral (select k.id from sluice.run k where k.id = t.id limit 1) y
    ), stops as (
      insert into sluice.stop (id, reason) select id, p_reason from running r where not exists (select from sluice.stop s where s.id = r.id)
    )
    select coalesce((select array_agg(gone.id) from gone), '{}'), coalesce((select array_agg(running.id) from running), '{}') into v_round, v_round_asked;
    v_gone := v_gone || v_round; v_asked := v_asked || v_round_asked;
    v_left := array(select unnest(p_ids) except select unnest(v_gone) except select unnest(v_asked));
    exit when v_left = '{}';
    if v_try = 2 then perform pg_sleep(0.002); end if;
  end loop;
  perform sluice.tell_awaited(array(select distinct a.id from sluice.awaited a where a.id = any (v_gone)));
  -- What they held may let others through, whom no enqueue announces.
  if v_gone <> '{}' and exists (select from sluice.worker where asleep) then
    perform sluice.ring(array(select distinct t.stream from sluice.task t where t.id = any (v_gone) and t.lanes is not null), cardinality(v_gone));
  end if;
  return query select x, case when x = any (v_gone) then 'cancelled' when x = any (v_asked) then 'asked'
    when exists (select from sluice.done d where d.id = x) then 'over'
    when not exists (select from sluice.task t where t.id = x) then 'unknown' else 'moving' end
  from unnest(p_ids) x;
end $$;

-- A failed or cancelled task runs again from its first attempt, in its old place.
create function sluice.retry(p_id bigint) returns boolean language plpgsql as $$
declare v_task sluice.task; v_held int; v_at int;
begin
  delete from sluice.done where id = p_id and state in ('f', 'c');
  if not found then return false; end if;
  delete from sluice.stop where id = p_id;
  delete from sluice.crash where id = p_id;
  delete from sluice.block where id = p_id;
  v_held := case when found then 1 else 0 end;
  select * into v_task from sluice.task where id = p_id;
  v_at := v_held + 1;
  if v_held < coalesce(cardinality(v_task.lanes), 0) then
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    values (p_id, v_task.lanes[v_at], sluice.lane_place(v_task.lanes[v_at], v_task.rank), v_task.rank, 0, v_held, v_task.stream, v_task.gate, v_task.lanes, v_task.lane_limits);
    insert into sluice.dirty (lane, limit_id) values (v_task.lanes[v_at], v_task.lane_limits[v_at]);
  elsif v_task.gate = 0 then
    insert into sluice.ready (id, stream, rank, attempt, lanes) values (p_id, v_task.stream, v_task.rank, 0, v_task.lanes);
  else
    insert into sluice.gated (id, stream, gate, rank, attempt, lanes) values (p_id, v_task.stream, v_task.gate, v_task.rank, 0, v_task.lanes);
  end if;
  perform sluice.ring(array[v_task.stream], 1);
  return true;
end $$;

-- A blocked order key goes on without its failed task.
create function sluice.unblock(p_id bigint) returns boolean language plpgsql as $$
begin
  with gone as (delete from sluice.block where id = p_id returning lane)
  insert into sluice.dirty (lane, limit_id, freed) select lane, 0, 1 from gone;
  if not found then return false; end if;
  perform sluice.ring(array[stream], 1) from sluice.task where id = p_id;
  return true;
end $$;

-- The state of one task. One statement, one snapshot: it is found in exactly one place.
create view sluice.task_state as
  select t.id, s.type, s.queue, -t.rank as priority, t.created_at, t.attempts_max, t.input, t.lanes, t.lane_limits, t.lane_keys, t.gate,
    x.state, x.attempt, x.run_at, x.worker, x.started_at, x.finished_at, x.outcome
  from sluice.task t join sluice.stream s on s.id = t.stream
  cross join lateral (
    select 'scheduled' as state, attempt, run_at, null::bigint as worker, null::timestamptz as started_at, null::timestamptz as finished_at, null::json as outcome from sluice.scheduled where id = t.id
    union all select 'waiting', attempt, null, null, null, null, null from sluice.wait w where w.lane = any (t.lanes) and w.place = sluice.lane_place(w.lane, t.rank) and w.id = t.id
    union all select 'ready', attempt, null, null, null, null, null from sluice.ready r where t.gate = 0 and r.stream = t.stream and r.rank = t.rank and r.id = t.id
    union all select 'waiting', attempt, null, null, null, null, null from sluice.gated g where t.gate <> 0 and g.stream = t.stream and g.gate = t.gate and g.rank = t.rank and g.id = t.id
    union all select 'waiting', attempt, null, null, null, null, null from sluice.park where id = t.id
    union all select 'ready', attempt, null, null, null, null, null from sluice.suspect where id = t.id
    union all select 'running', attempt, null, worker, started_at, null, null from sluice.run where id = t.id
    union all select case state when 's' then 'succeeded' when 'f' then 'failed' else 'cancelled' end, attempt, null, worker, started_at, finished_at, outcome from sluice.done where id = t.id
  ) x;

-- What must never be: slots and holders that differ, a lane or gate above its capacity although its
-- number was never lowered below, a waiter nobody will wake, a task in two states or in none.
create view sluice.violation as
  with holder as (
    select lane, count(*) as n from (
      select lanes as l from sluice.ready union all select lanes from sluice.gated union all select lanes from sluice.run union all select lanes from sluice.suspect
      union all select lanes[1:held] from sluice.wait union all select array[lane] from sluice.block
      union all select t.lanes[1:s.held] from sluice.scheduled s join sluice.task t using (id) where s.held > 0
      union all select t.lanes[1:p.held] from sluice.park p join sluice.task t using (id) where p.held > 0
    ) x, unnest(x.l) lane group by lane
  ), freed as (
    select lane, sum(dirty.freed) as n from sluice.dirty where dirty.freed > 0 group by lane
  ), expected as (
    select coalesce(h.lane, f.lane) as lane, coalesce(h.n, 0) + coalesce(f.n, 0) as n from holder h full join freed f on f.lane = h.lane
  ), place as (
    select id from sluice.ready union all select id from sluice.gated union all select id from sluice.wait union all select id from sluice.scheduled
    union all select id from sluice.park union all select id from sluice.suspect union all select id from sluice.run union all select id from sluice.done
  )
  select 'slots differ from holders' as what, coalesce(l.id, e.lane) as id, l.used::bigint as used, l.cap::bigint as cap, coalesce(e.n, 0)::bigint as held
    from sluice.lane l full join expected e on e.lane = l.id where coalesce(l.used, 0) <> coalesce(e.n, 0)
  union all select 'order key held twice', l.id, l.used, l.cap, null from sluice.lane l where l.id >> 60 = 1 and l.used > 1
  union all select 'waiter without a waker', w.lane, l.used, l.cap, null from (select distinct lane from sluice.wait) w left join sluice.lane l on l.id = w.lane
    where (l.id is null or l.used < l.cap) and not exists (select from sluice.dirty d where d.lane = w.lane)
  union all select 'gate differs from holders', g.id, g.used, g.cap, r.n from sluice.gate g cross join lateral (
    select (select count(*) from sluice.run where g.id = any (sluice.gates_of(run.gate) || stream_gate)) + coalesce((select sum(n) from sluice.credit c where c.gate = g.id), 0) as n) r where g.used <> r.n
  union all select 'task in two states', id, null, null, count(*) from place group by id having count(*) > 1
  union all select 'task in no state', t.id, null, null, 0 from sluice.task t where not exists (select from place p where p.id = t.id);

-- The slots of limits, for metrics: at most p_max limits, those named first. A limit per key is told under name/*, by
-- the key that has the most. slots: null while lifted. waiting: tasks that stand before a limit that is full, counted
-- up to 1,000; of a limit's keys 10,000 are looked at. So a million of either cost no more.
create function sluice.limit_slots(p_names text[], p_max int) returns table (name text, slots int, used int, waiting int)
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  with chosen as materialized (
    select l.*, coalesce(total_override, total_declared) as total, coalesce(per_key_override, per_key_declared) as per_key
    from sluice.limits l order by l.name = any (p_names) desc, l.name limit p_max
  ), member as materialized (
    select x.gate, s.id from (select id, gates from sluice.gate_set order by id desc limit 1000) s cross join lateral unnest(s.gates) x(gate)
  )
  select l.name, nullif(l.total, 2147483647), g.used,
    case when g.used < l.total then 0 else (select count(*) from (
      select from sluice.gate_stream st
      cross join lateral (select l.id as gate union all select m.id from member m where m.gate = l.id) t
      cross join lateral (select from sluice.gated w where w.stream = st.stream and w.gate = t.gate limit 1000) w
      where st.gate = l.id
      union all
      select from sluice.stream st cross join lateral (select from sluice.ready r where r.stream = st.id limit 1000) r where st.gate = l.id
      limit 1000) w) end::int
  from chosen l cross join lateral (
    select (k.used - coalesce((select sum(c.n) from sluice.credit c where c.gate = k.id), 0))::int as used from sluice.gate k where k.id = l.id) g
  where l.total is not null
  union all
  select l.name || '/*', nullif(l.per_key, 2147483647),
    coalesce((select max(n.used) from (select n.used from sluice.lane n where n.limit_id = l.id and n.limit_id > 0 limit 10000) n), 0)::int,
    (select count(*) from (
      select from (select n.id from (select n.id, n.used, n.cap from sluice.lane n where n.limit_id = l.id and n.limit_id > 0 limit 10000) n where n.used >= n.cap limit 1000) n
      cross join lateral (select from sluice.wait w where w.lane = n.id limit 1000) w limit 1000) w)::int
  from chosen l where l.per_key is not null
$$;
