-- What a deploy declares: limits, contracts, streams. Numbers are inserted when absent and changed
-- only by a sync, so a rolling worker with an old number cannot put it back.

create function sluice.declare_limit(p_name text, p_total int, p_per_key int, p_sync boolean default false)
returns int language plpgsql as $$
declare v sluice.limits;
begin
  select * into v from sluice.limits where name = p_name;
  if not found then
    insert into sluice.limits (name, total_declared, per_key_declared) values (p_name, p_total, p_per_key)
    on conflict (name) do nothing;
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
    perform sluice.apply_limit(v.id);
  end if;
  return v.id;
end $$;

-- Brings gates and lanes in line with the number in force. Only under the exclusive barrier: nothing
-- is being admitted or claimed meanwhile.
create function sluice.apply_limit(p_limit int) returns void language plpgsql as $$
begin
  update sluice.gate g set cap = coalesce(l.total_override, l.total_declared), full_at = least(sluice.full_until(g.id), sluice.clock())
  from sluice.limits l where l.id = p_limit and g.id = p_limit;
  -- guard: caps follow the limit -> test/postgres/limits.test.ts: "a lowered limit per key admits nothing until below"
  update sluice.lane n set cap = sluice.lane_cap(n.id, n.limit_id)
  where n.limit_id = p_limit and n.cap <> sluice.lane_cap(n.id, n.limit_id);
  insert into sluice.dirty (lane, limit_id) select id, limit_id from sluice.lane where limit_id = p_limit and used < cap;
  insert into sluice.lowered select p_limit where exists (select from sluice.lane where limit_id = p_limit and used > cap) on conflict do nothing;
  -- Raised, it may let many through, whom no enqueue announces.
  perform sluice.ring(array(select s.id from sluice.stream s left join sluice.contract c on c.type = s.type
    where s.gate = p_limit or c.limit_ids is null or p_limit = any (c.limit_ids)), 50);
end $$;

-- Tasks that hold a slot of a lane above its number, but do not run, go back to stand at that lane,
-- the last ones first; else they would keep the lane above its number without using it. Those that
-- somebody has in hand are skipped and looked at again: the keeper calls this while a limit is
-- `lowered`, and claims pass over them until then. Slots that come free become notes.
create function sluice.shed() returns int language plpgsql set jit = off as $$
declare v_n int;
begin
  perform sluice.barrier_shared();
  with over as materialized (
    select n.id as lane, n.used - n.cap as excess from sluice.lowered d join sluice.lane n on n.limit_id = d.limit_id and n.limit_id <> 0 where n.used > n.cap
  ), holder as (
    select 'r' as source, r.ctid as tid, r.rank, r.id, r.attempt, o.lane, o.excess
    from sluice.ready r cross join lateral unnest(r.lanes) l join over o on o.lane = l where exists (select from over)
    union all
    select 'g', g.ctid, g.rank, g.id, g.attempt, o.lane, o.excess
    from sluice.gated g cross join lateral unnest(g.lanes) l join over o on o.lane = l where exists (select from over)
  ), ranked as (
    select *, row_number() over (partition by lane order by rank desc, id desc) as k from holder
  ), chosen as materialized (
    select source, tid, id, attempt, min(lane) as lane from ranked where k <= excess group by source, tid, id, attempt
  ), from_ready as (
    delete from sluice.ready where ctid = any (array(select ctid from sluice.ready
      where ctid = any (array(select tid from chosen where source = 'r')) for update skip locked)) returning id
  ), from_gated as (
    delete from sluice.gated where ctid = any (array(select ctid from sluice.gated
      where ctid = any (array(select tid from chosen where source = 'g')) for update skip locked)) returning id
  ), back as materialized (
    select t.*, c.attempt, array_position(t.lanes, c.lane) as at from chosen c join sluice.task t on t.id = c.id
    where c.id in (select id from from_ready union all select id from from_gated)
  ), waits as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[at], sluice.lane_place(lanes[at], rank), rank, attempt, at - 1, stream, gate, lanes, lane_limits from back
  ), notes as (
    insert into sluice.dirty (lane, limit_id, freed)
    select l, 0, count(*) from back b cross join lateral unnest(b.lanes[b.at:]) l group by l
  )
  select count(*) into v_n from back;
  delete from sluice.lowered d where not exists (select from sluice.lane n where n.limit_id = d.limit_id and n.limit_id <> 0 and n.used > n.cap);
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
  perform sluice.apply_limit(v.id);
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
  delete from sluice.gate_stream where gate = v_id;
  delete from sluice.lowered where limit_id = v_id;
  update sluice.lane set cap = 2147483647 where limit_id = v_id;
  insert into sluice.dirty (lane, limit_id) select id, limit_id from sluice.lane where limit_id = v_id;
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
  if not p_paused then perform sluice.ring(array(select id from sluice.stream where queue = p_queue), 50); end if;
end $$;
