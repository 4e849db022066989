-- What a deploy declares: limits, contracts, streams. Numbers are inserted when absent and changed
-- only by a sync, so a rolling worker with an old number cannot put it back.

-- p_transient: an enqueue needs it, so it is forgotten when it has been unused for long.
create function sluice.declare_limit(p_name text, p_total int, p_per_key int, p_sync boolean default false,
  p_transient boolean default false)
returns int language plpgsql as $$
declare v sluice.limits;
begin
  select * into v from sluice.limits where name = p_name;
  -- guard: a declared limit counts as used -> test/postgres/forget.test.ts: "a group that is declared again is not forgotten"
  if v.unused_since is not null then
    -- Waits for a forget_limits that has it in hand, and then finds it gone.
    update sluice.limits set unused_since = null where id = v.id returning * into v;
  end if;
  if v.id is null then
    insert into sluice.limits (name, total_declared, per_key_declared, transient)
    values (p_name, p_total, p_per_key, p_transient) on conflict (name) do nothing;
    select * into v from sluice.limits where name = p_name;
  end if;
  if (p_total is not null and v.total_declared is null) or (p_per_key is not null and v.per_key_declared is null) then
    perform sluice.refuse('limit_shape', format(
      'limit %L exists without a %s part: tasks already enqueued carry no slot of it. Give the new limit another name.',
      p_name, case when v.total_declared is null then 'total' else 'perKey' end));
  end if;
  if v.total_declared is not null then
    insert into sluice.gate (id, cap) values (v.id, coalesce(v.total_override, v.total_declared)) on conflict (id) do nothing;
  end if;
  if p_sync and (p_total, p_per_key) is distinct from (v.total_declared, v.per_key_declared) then
    perform sluice.barrier_alone();
    update sluice.limits set total_declared = coalesce(p_total, total_declared),
      per_key_declared = coalesce(p_per_key, per_key_declared) where id = v.id;
    perform sluice.apply_limit(v.id, coalesce(v.per_key_override, v.per_key_declared));
  end if;
  return v.id;
end $$;

-- Brings the gate in line with the number in force, and has the lanes looked at if the number per key was another
-- (p_was) before. Only under the exclusive barrier: nothing is being admitted or claimed meanwhile. A lane has no copy
-- of its limit's number, so what is to be done here does not grow with the keys in use: the first lanes are looked at,
-- the keeper goes on with the others.
create function sluice.apply_limit(p_limit int, p_was int default null) returns void language plpgsql as $$
declare v_per_key int := sluice.cap_of(null, p_limit);
begin
  update sluice.gate g set cap = coalesce(l.total_override, l.total_declared), full_at = least(sluice.full_until(g.id), sluice.clock())
  from sluice.limits l where l.id = p_limit and g.id = p_limit;
  if v_per_key < p_was then
    insert into sluice.lowered (limit_id) values (p_limit) on conflict (limit_id) do update set after = 0, turn = 0;
  end if;
  if v_per_key <> p_was then perform sluice.follow_change(p_limit); end if;
  perform sluice.note_returned(array[p_limit]);
  -- Raised, it may let many through, whom no enqueue announces.
  perform sluice.ring(array(select s.id from sluice.stream s left join sluice.contract c on c.type = s.type
    where s.gate = p_limit or c.limit_ids is null or p_limit = any (c.limit_ids)), 50);
end $$;

-- The lanes of a limit are to be looked at, from the first. Under the exclusive barrier.
create function sluice.follow_change(p_limit int) returns void language plpgsql as $$
begin
  insert into sluice.changed (limit_id, after) values (p_limit, (2::bigint << 60) - 1)
  on conflict (limit_id) do update set after = excluded.after;
  perform sluice.follow_limit(500, p_limit);
end $$;

-- Looks at the next p_max lanes after a limit's number has changed: those with room for a waiter get a note, those above
-- the number become `excess`. The walk goes by the primary key, over lanes of all limits: it is bounded all the same, and
-- needs no index of its own. Its row in `changed` lets one worker at a time do it; it is skipped when locked, so it has no
-- place in the lock order. Returns how many lanes were looked at.
create function sluice.follow_limit(p_max int, p_limit int default null) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v sluice.changed; v_n int; v_last bigint; v_cap int;
begin
  select * into v from sluice.changed c where p_limit is null or c.limit_id = p_limit
  order by c.limit_id limit 1 for update skip locked;
  if not found then return 0; end if;
  v_cap := sluice.cap_of(null, v.limit_id);
  with piece as materialized (
    select n.id, n.limit_id, n.used from sluice.lane n where n.id > v.after order by n.id limit p_max
  ), notes as (
    -- guard: waiters are woken when it is raised -> test/postgres/limits.test.ts: "waiters of thousands of keys are woken when their limit is raised"
    insert into sluice.dirty (lane, limit_id) select x.id, x.limit_id from piece x
    where x.limit_id = v.limit_id and x.used < v_cap and exists (select from sluice.wait w where w.lane = x.id)
  ), above as (
    -- guard: lanes above the number are found -> test/postgres/limits.test.ts: "what is through a lowered limit of thousands of keys goes back"
    insert into sluice.excess (limit_id, lane) select x.limit_id, x.id from piece x
    where x.limit_id = v.limit_id and x.used > v_cap on conflict do nothing
  )
  select count(*), max(id) into v_n, v_last from piece;
  if v_n = p_max then
    update sluice.changed set after = v_last where limit_id = v.limit_id;
  else
    delete from sluice.changed where limit_id = v.limit_id;
    delete from sluice.lowered where limit_id = v.limit_id
      and not exists (select from sluice.excess e where e.limit_id = v.limit_id);
  end if;
  return v_n;
end $$;

-- Tasks that hold a slot of a lane above its number, but do not run, go back to stand at that lane,
-- the last ones first; else they would keep the lane above its number without using it. Those that
-- somebody has in hand are skipped and looked at again: the keeper calls this while a limit is
-- `lowered`, and claims pass over them until then. Slots that come free become notes, no more than the keeper's next look
-- takes. At most p_max lanes of each limit at a time, by one worker: the advisory lock is tried and never waited for.
-- cleared: lanes that are no longer above their number.
create function sluice.shed(p_max int default 500, out shed int, out cleared int) language plpgsql set jit = off as $$
declare v_lanes bigint[]; v_used int[]; v_excess int[]; v_turn int; v_from tid; v_to tid;
begin
  shed := 0; cleared := 0;
  perform sluice.barrier_shared();
  if not pg_try_advisory_xact_lock('sluice.lowered'::regclass::oid::int, 0) then return; end if;
  v_turn := (select min(turn) from sluice.lowered);
  with piece as materialized (
    select d.limit_id, e.lane from sluice.lowered d cross join lateral (
      select lane from sluice.excess where limit_id = d.limit_id and lane > d.after order by lane limit p_max) e
    union all
    select -2, n.id from sluice.lane n where n.limit_id = -2 and n.used > n.cap
      and exists (select from sluice.lowered where limit_id = -2)
  ), over as materialized (
    select p.*, n.used, n.used - coalesce(n.cap, l.per_key_override, l.per_key_declared, 2147483647) as excess
    from piece p left join sluice.lane n on n.id = p.lane left join sluice.limits l on l.id = n.limit_id
  ), below as (
    delete from sluice.excess e using over o
    where e.limit_id = o.limit_id and e.lane = o.lane and coalesce(o.excess, 0) <= 0 returning 1
  ), moved as (
    update sluice.lowered d set turn = turn + 1,
      after = coalesce((select max(p.lane) from piece p where p.limit_id = d.limit_id having count(*) = p_max), 0)
  )
  select array_agg(lane) filter (where excess > 0), array_agg(used) filter (where excess > 0),
    array_agg(excess) filter (where excess > 0), (select count(*) from below)
  into v_lanes, v_used, v_excess, cleared from over;
  if v_lanes is not null then
    select r.from_tid, r.to_tid into v_from, v_to from sluice.shed_range(v_lanes, v_used, v_excess, v_turn) r;
    shed := sluice.shed_holders(v_lanes, v_excess, p_max - p_max / 4, v_from, v_to);
  end if;
  delete from sluice.lowered d where case when d.limit_id = -2
    then not exists (select from sluice.lane n where n.limit_id = -2 and n.used > n.cap)
    else not exists (select from sluice.excess e where e.limit_id = d.limit_id)
      and not exists (select from sluice.changed c where c.limit_id = d.limit_id) end;
end $$;

-- The index finds a holder by its last lane. If a lane has holders that neither run nor are found so, they may be tasks
-- of several lanes: then this is the range of ctids to search this time, 4 MB of each table in turn. Else it is empty.
create function sluice.shed_range(p_lanes bigint[], p_used int[], p_excess int[], p_turn int,
  out from_tid tid, out to_tid tid)
language plpgsql as $$
declare v_blocks constant int := 512; v_pieces bigint; v_hidden boolean;
begin
  with running as (
    select l as lane, count(*) as n from sluice.run r cross join lateral unnest(r.lanes) l
    where l = any (p_lanes) group by l
  )
  select bool_or(f.n < u.excess and u.used > f.n + coalesce(r.n, 0)) into v_hidden
  from unnest(p_lanes, p_used, p_excess) u(lane, used, excess) left join running r on r.lane = u.lane
  cross join lateral (select count(*) as n from sluice.shed_last(u.lane, u.excess)) f;
  v_pieces := greatest(pg_relation_size('sluice.ready'), pg_relation_size('sluice.gated'))
    / current_setting('block_size')::int / v_blocks + 1;
  -- guard: holders are found by any of their lanes -> test/postgres/limits.test.ts: "a task of two limits per key goes back to the one that was lowered, whichever it passed first"
  from_tid := format('(%s,0)', (p_turn % v_pieces) * v_blocks)::tid;
  to_tid := case when v_hidden then format('(%s,0)', (p_turn % v_pieces + 1) * v_blocks)::tid else from_tid end;
end $$;

-- Tasks that do not run and whose last lane this is, the last ones first, by index.
create function sluice.shed_last(p_lane bigint, p_max int)
returns table (source "char", tid tid, rank smallint, id bigint, attempt smallint)
language sql stable set enable_seqscan = off set enable_bitmapscan = off as $$
  (select 'r'::"char", r.ctid, r.rank, r.id, r.attempt from sluice.ready r
    where r.lanes[cardinality(r.lanes)] = p_lane and r.lanes[cardinality(r.lanes)] >> 60 > 1
    order by r.rank desc, r.id desc limit p_max)
  union all
  (select 'g', g.ctid, g.rank, g.id, g.attempt from sluice.gated g
    where g.lanes[cardinality(g.lanes)] = p_lane and g.lanes[cardinality(g.lanes)] >> 60 > 1
    order by g.rank desc, g.id desc limit p_max)
$$;

create function sluice.shed_holders(p_lanes bigint[], p_excess int[], p_max int, p_from tid, p_to tid) returns int
language plpgsql set jit = off as $$
declare v_n int;
begin
  with over as materialized (
    select * from unnest(p_lanes, p_excess) u(lane, excess)
  ), holder as (
    select h.source, h.tid, h.rank, h.id, h.attempt, o.lane, o.excess
    from over o cross join lateral sluice.shed_last(o.lane, least(o.excess, p_max)) h
    union all
    select 'r', r.ctid, r.rank, r.id, r.attempt, o.lane, o.excess from sluice.ready r
    cross join lateral unnest(r.lanes[:cardinality(r.lanes) - 1]) l join over o on o.lane = l
    where r.ctid >= p_from and r.ctid < p_to and cardinality(r.lanes) > 1
    union all
    select 'g', g.ctid, g.rank, g.id, g.attempt, o.lane, o.excess from sluice.gated g
    cross join lateral unnest(g.lanes[:cardinality(g.lanes) - 1]) l join over o on o.lane = l
    where g.ctid >= p_from and g.ctid < p_to and cardinality(g.lanes) > 1
  ), ranked as (
    select *, row_number() over (partition by lane order by rank desc, id desc) as k from holder
  ), chosen as materialized (
    select source, tid, id, attempt, array_agg(lane) as over from ranked where k <= excess
    group by source, tid, id, attempt limit p_max
  ), from_ready as (
    delete from sluice.ready where ctid = any (array(select ctid from sluice.ready
      where ctid = any (array(select tid from chosen where source = 'r')) for update skip locked)) returning id
  ), from_gated as (
    delete from sluice.gated where ctid = any (array(select ctid from sluice.gated
      where ctid = any (array(select tid from chosen where source = 'g')) for update skip locked)) returning id
  ), back as materialized (
    select t.*, c.attempt, (select min(array_position(t.lanes, l)) from unnest(c.over) l) as at
    from chosen c cross join lateral (select * from sluice.task where id = c.id limit 1) t
    where c.id in (select id from from_ready union all select id from from_gated)
  ), waits as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[at], sluice.lane_place(lanes[at], rank), rank, attempt, at - 1, stream, gate, lanes, lane_limits from back
  ), notes as (
    insert into sluice.dirty (lane, limit_id, freed)
    select l, 0, count(*) from back b cross join lateral unnest(b.lanes[b.at:]) l group by l
  )
  select count(*) into v_n from back;
  return v_n;
end $$;

-- The operator's number: for everyone, from the moment this returns, through every deploy.
-- null leaves a part alone, -1 drops the override, 2147483647 lifts the limit.
create function sluice.set_limit(p_name text, p_total int, p_per_key int) returns void language plpgsql as $$
declare v sluice.limits;
begin
  perform sluice.barrier_alone();
  select * into v from sluice.limits where name = p_name;
  if not found then perform sluice.refuse('unknown_limit', format('there is no limit named %L', p_name)); end if;
  if (p_total is not null and v.total_declared is null) or (p_per_key is not null and v.per_key_declared is null) then
    perform sluice.refuse('limit_shape', format('limit %L has no %s part: its tasks carry no slot of it',
      p_name, case when v.total_declared is null then 'total' else 'perKey' end));
  end if;
  update sluice.limits set
    total_override = case when p_total is null then total_override when p_total < 0 then null else p_total end,
    per_key_override = case when p_per_key is null then per_key_override when p_per_key < 0 then null else p_per_key end
  where id = v.id;
  perform sluice.apply_limit(v.id, coalesce(v.per_key_override, v.per_key_declared));
end $$;

-- A limit that no code uses any more. Tasks that still carry it pass it freely, and nothing of it is
-- left: a lane or gate without its limit limits nothing.
create function sluice.remove_limit(p_name text) returns boolean language plpgsql as $$
declare v_id int;
begin
  perform sluice.barrier_alone();
  delete from sluice.limits where name = p_name returning id into v_id;
  if not found then return false; end if;
  update sluice.contract set gate = 0 where gate = v_id;
  update sluice.contract set limit_ids = array_remove(limit_ids, v_id) where limit_ids @> array[v_id];
  update sluice.stream set gate = 0 where id = any (array(select s.id from sluice.stream s where s.gate = v_id order by s.id for update));
  delete from sluice.gate where id = v_id;
  delete from sluice.credit where gate = v_id;
  perform sluice.note_returned(array[v_id]);
  delete from sluice.gate_stream where gate = v_id;
  perform sluice.follow_change(v_id);
  perform sluice.ring(array(select id from sluice.stream), 50);
  return true;
end $$;

create function sluice.declare_stream(p_queue text, p_type text) returns int language plpgsql as $$
declare v_id int;
begin
  select id into v_id from sluice.stream where queue = p_queue and type = p_type;
  if found then return v_id; end if;
  insert into sluice.queue (name) values (p_queue) on conflict do nothing;
  insert into sluice.stream (queue, type, gate, paused)
  select p_queue, p_type, coalesce((select gate from sluice.contract where type = p_type), 0),
    (select paused from sluice.queue where name = p_queue)
  on conflict do nothing;
  select id into v_id from sluice.stream where queue = p_queue and type = p_type;
  insert into sluice.gate_stream select c.gate, v_id from sluice.contract c where c.type = p_type and c.gate > 0 on conflict do nothing;
  insert into sluice.gate_stream select g.id, v_id from sluice.contract c join sluice.gate g on g.id = any (c.limit_ids)
  where c.type = p_type on conflict do nothing;
  return v_id;
end $$;

-- The shape of a type follows the newest deploy; p_concurrency (null: none) only when absent or synced.
create function sluice.declare_contract(
  p_type text, p_queue text, p_priority int, p_attempts int, p_ordered boolean, p_order_scope text, p_order_blocks boolean,
  p_limit_ids int[], p_concurrency int, p_sync boolean default false)
returns int language plpgsql as $$
declare v_gate int; v_old int; v_stream int;
begin
  -- Before any row lock, like everywhere: giving a type its limit, or taking it away, needs the barrier.
  select gate into v_old from sluice.contract where type = p_type;
  if p_sync or p_concurrency is not null and coalesce(v_old, 0) = 0 then perform sluice.barrier_alone(); end if;
  if p_concurrency is not null then v_gate := sluice.declare_limit(p_type, p_concurrency, null, p_sync); end if;
  insert into sluice.contract as c (type, queue, priority, attempts_max, ordered, order_scope, order_blocks, limit_ids)
  values (p_type, p_queue, p_priority, p_attempts, p_ordered, p_order_scope, p_order_blocks, p_limit_ids)
  on conflict (type) do update set queue = excluded.queue, priority = excluded.priority, attempts_max = excluded.attempts_max,
    ordered = excluded.ordered, order_scope = excluded.order_scope, order_blocks = excluded.order_blocks, limit_ids = excluded.limit_ids
  where (c.queue, c.priority, c.attempts_max, c.ordered, c.order_scope, c.order_blocks, c.limit_ids) is distinct from
    (excluded.queue, excluded.priority, excluded.attempts_max, excluded.ordered, excluded.order_scope, excluded.order_blocks, excluded.limit_ids);
  v_stream := sluice.declare_stream(p_queue, p_type);
  select gate into v_old from sluice.contract where type = p_type;
  if v_gate is not null and v_old = 0 or p_sync and v_old <> coalesce(v_gate, 0) then
    perform sluice.set_stream_gate(p_type, coalesce(v_gate, 0));
  end if;
  perform sluice.declare_use(v_stream, p_limit_ids);
  return v_stream;
end $$;

-- Tasks of this stream may pass these limits.
create function sluice.declare_use(p_stream int, p_limit_ids int[]) returns void language plpgsql as $$
begin
  insert into sluice.gate_stream select g.id, p_stream from sluice.gate g where g.id = any (p_limit_ids) on conflict do nothing;
  if found then
    -- From this many totals on, walking them costs a claim more than the notes of 0027_kinds.sql.
    -- guard: many groups are noticed -> test/postgres/kinds.test.ts: "a task of a free group is claimed at once beside thousands of full groups"
    update sluice.stream set many = true where id = p_stream and not many
      and (select count(*) from (select from sluice.gate_stream where stream = p_stream limit 64) x) = 64;
  end if;
  update sluice.stream set laned = true where id = p_stream and not laned
    and exists (select from sluice.limits where id = any (p_limit_ids) and per_key_declared is not null);
  perform sluice.gate_of(array(select distinct g.id from sluice.gate g where g.id = any (p_limit_ids) order by g.id));
end $$;

-- A type gets its own limit, or loses it. Its backlog need not move: the limit is a property of the
-- stream and is looked up at the claim (attack 12). What runs already is counted in.
create function sluice.set_stream_gate(p_type text, p_gate int) returns void language plpgsql set lock_timeout = '10s' as $$
declare v_running int;
begin
  perform sluice.barrier_alone();
  update sluice.contract set gate = p_gate where type = p_type;
  update sluice.stream set gate = p_gate where id = any (array(select s.id from sluice.stream s where s.type = p_type order by s.id for update));
  if p_gate = 0 then
    perform sluice.ring(array(select id from sluice.stream where type = p_type), 50);
    return;
  end if;
  insert into sluice.gate_stream select p_gate, id from sluice.stream where type = p_type on conflict do nothing;
  with running as (
    select r.ctid from sluice.run r join sluice.task t on t.id = r.id join sluice.stream s on s.id = t.stream
    -- Not skip locked: a completion in a user's transaction may roll back, and its task runs on.
    where s.type = p_type and r.stream_gate <> p_gate and p_gate <> all (sluice.gates_of(r.gate)) for update of r
  ), gone as (
    delete from sluice.run where ctid = any (array(select ctid from running)) returning *
  ), counted as (
    insert into sluice.run (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
    select id, claim, worker, attempt, started_at, gate, p_gate, lanes from gone returning 1
  )
  select count(*) into v_running from counted;
  update sluice.gate set used = used + v_running where id = p_gate;
end $$;

create function sluice.pause_queue(p_queue text, p_paused boolean) returns void language plpgsql as $$
begin
  perform sluice.barrier_alone();
  insert into sluice.queue (name) select 'default' where p_queue = 'default' on conflict do nothing;
  update sluice.queue set paused = p_paused where name = p_queue;
  if not found then perform sluice.refuse('unknown_queue', format('there is no queue named %L', p_queue)); end if;
  update sluice.stream set paused = p_paused where id = any (array(
    select s.id from sluice.stream s where s.queue = p_queue and s.paused <> p_paused order by s.id for update));
  if not p_paused then
    -- What had left its lines goes back at once: the keeper would look within a second.
    perform sluice.unpark(1000);
    perform sluice.ring(array(select id from sluice.stream where queue = p_queue), 50);
  end if;
end $$;
