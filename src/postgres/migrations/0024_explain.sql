-- Why a task does not run: what it meets on its way to a worker, in that order; the first is what holds it now.
--
-- A look, without a lock. All functions here are stable: they share the snapshot of whoever asks, so a task is found
-- in one place, and what it waits for is what it waited for at that moment. Who holds a slot of a lane is in no index,
-- for every claim would pay for it: the holders are looked for where they mostly are first, and no further than needed.
-- Lines are counted up to 10,000. The numbers in JSON are few and small, but for ids, which are text.

create function sluice.lane_holders(p_lane bigint, p_max int) returns table (id bigint, state text, since timestamptz, worker bigint)
language sql stable set enable_seqscan = on set jit = off set max_parallel_workers_per_gather = 0 as $$
  select * from (
    (select r.id, 'running', r.started_at, r.worker from sluice.run r where r.lanes @> array[p_lane] order by r.started_at, r.id limit p_max)
    union all select b.id, 'failed', d.finished_at, null from sluice.block b
      left join lateral (select d.finished_at from sluice.done d where d.id = b.id limit 1) d on true where b.lane = p_lane
    union all select x.id, 'ready', null, x.reserved_by from sluice.suspect x where x.lanes @> array[p_lane]
    -- Out of the line they keep the slot of their order key alone.
    union all select p.id, 'waiting', null, null from sluice.parent p cross join lateral (select t.lanes from sluice.task t where t.id = p.id limit 1) t
      where p_lane >> 60 = 1 and p.held > 0 and t.lanes[1] = p_lane
    union all select p.id, 'waiting', null, null from sluice.park p cross join lateral (select t.lanes from sluice.task t where t.id = p.id limit 1) t
      where p_lane >> 60 = 1 and p.held > 0 and t.lanes[1] = p_lane
    union all select s.id, 'scheduled', null, null from sluice.scheduled s cross join lateral (select t.lanes from sluice.task t where t.id = s.id limit 1) t
      where p_lane >> 60 = 1 and s.held > 0 and t.lanes[1] = p_lane
    union all select g.id, 'waiting', null, null from sluice.gated g where g.lanes @> array[p_lane]
    union all select w.id, 'waiting', null, null from sluice.wait w where w.held > 0 and p_lane = any (w.lanes[1:w.held])
    union all select r.id, 'ready', null, null from sluice.ready r where r.lanes @> array[p_lane]
  ) h limit p_max
$$;

-- p_deep: if it does not run, also why.
create function sluice.explain_holder(p_id bigint, p_state text, p_since timestamptz, p_worker bigint, p_deep boolean) returns json language plpgsql stable as $$
begin
  return (select json_build_object('task', p_id::text, 'type', s.type, 'queue', s.queue, 'state', p_state, 'since', p_since, 'worker', (select w.name from sluice.worker w where w.id = p_worker),
      'reason', case when p_deep and p_state not in ('running', 'failed') then sluice.explain(p_id, false) -> 'reasons' -> 0 end)
    from sluice.task t join sluice.stream s on s.id = t.stream where t.id = p_id);
end $$;

-- Slots of a gate that are out.
create function sluice.gate_used(p_gate int) returns int language sql stable as
$$ select (g.used - coalesce((select sum(c.n) from sluice.credit c where c.gate = g.id), 0))::int from sluice.gate g where g.id = p_gate $$;

-- Whether a worker has missed a heartbeat: it beats three times a lease, and at least every 5 s.
create function sluice.is_silent(p_expires_at timestamptz, p_lease_ms int) returns boolean language sql stable as
$$ select sluice.clock() > p_expires_at - p_lease_ms * interval '1 ms' + least(p_lease_ms / 3, 5000) * interval '1.5 ms' $$;

-- The workers that could claim of these streams, as of their last heartbeats. silent: those that have missed one, and when
-- the last of them was heard; stopped: those that claim nothing, for another reason than that too few of their places are
-- free. capacity and available are those of the others.
create function sluice.explain_workers(p_streams int[], out live int, out leaving int, out capacity int, out available int, out stopped int, out pressure text[], out silent int, out heard_at timestamptz)
language sql stable as $$
  with able as (
    select w.capacity_max, case when w.pressure = 'stopped' then 0 else capacity_available end as available, w.pressure_reasons, expires_at - lease_ms * interval '1 ms' as heard_at,
      case when draining then 'leaving' when sluice.is_silent(expires_at, lease_ms) then 'silent' when w.pressure = 'stopped' and array_remove(pressure_reasons, 'permits') <> '{}' then 'stopped' else 'works' end as how
    from sluice.worker w where streams && p_streams and expires_at > sluice.clock()
  )
  select count(*) filter (where how <> 'leaving'), count(*) filter (where how = 'leaving'), coalesce(sum(capacity_max) filter (where how = 'works'), 0)::int,
    coalesce(sum(able.available) filter (where how = 'works'), 0)::int, count(*) filter (where how = 'stopped'),
    (select coalesce(array_agg(distinct r order by r), '{}') from able a cross join lateral unnest(array_remove(a.pressure_reasons, 'permits')) r where a.how = 'stopped'),
    count(*) filter (where how = 'silent'), max(able.heard_at) filter (where how = 'silent')
  from able
$$;

-- No live worker serves a stream. elsewhere: queues in which some serve its type, in case that one was meant.
create function sluice.explain_nobody(p_stream sluice.stream, p_leaving int) returns json language sql stable as $$
  select json_build_object('kind', 'noWorker', 'leaving', p_leaving, 'elsewhere', coalesce(json_agg(o.queue order by o.queue), '[]'))
  from (select o.queue from sluice.stream o where o.type = p_stream.type and o.id <> p_stream.id
    and exists (select from sluice.worker w where w.streams @> array[o.id] and w.expires_at > sluice.clock() and not w.draining) order by o.queue limit 10) o
$$;

-- What a task meets at its lane of this number: nothing if a slot is there for it. p_here: it stands in that line; else it
-- will, and only a full one counts.
create function sluice.explain_lane(p_task sluice.task, p_at int, p_here boolean, p_deep boolean) returns json[] language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_lane bigint := p_task.lanes[p_at]; v_level int := v_lane >> 60; v_limit int := p_task.lane_limits[p_at]; v_key text := p_task.lane_keys[p_at];
  v_used int; v_cap int; v_before int; v_holders json; v_shut json[] := '{}'; n record;
begin
  select l.used, l.cap into v_used, v_cap from sluice.lane l where l.id = v_lane;
  v_cap := coalesce(v_cap, sluice.lane_cap(v_lane, v_limit));
  -- Without what was given back by a note that nobody has looked at yet.
  v_used := greatest(0, coalesce(v_used, 0) - coalesce((select sum(d.freed) from sluice.dirty d where d.lane = v_lane and d.freed > 0), 0));
  if v_level = 2 then
    select k.run, r.paused, k.failing or r.stopping as stopping, k.window_size, coalesce(s.name, r.name) as name, k.state into n
    from sluice.workflow_node k join sluice.workflow_run r on r.id = k.run left join sluice.workflow_step s on s.graph = r.graph and s.node = k.node where k.lane = v_lane;
    if n.stopping and n.state in ('u', 'r') then return array[json_build_object('kind', 'stopping', 'run', n.run::text)]; end if;
    if n.paused and n.state in ('u', 'r') then v_shut := array[json_build_object('kind', 'paused', 'what', 'run', 'name', n.run::text)]; end if;
    -- Once its node is over a window shuts nobody out.
    v_cap := case when n.state in ('u', 'r') then n.window_size else 2147483647 end;
  end if;
  if not p_here and v_used < v_cap then return v_shut; end if;
  if p_here then
    v_before := (select count(*) from (select from sluice.wait w where w.lane = v_lane and (w.place, w.id) < (sluice.lane_place(v_lane, p_task.rank), p_task.id) limit 10000) x);
    -- Whoever claims next hands the free slots on, to the first in line.
    if v_before < v_cap - v_used then return v_shut; end if;
  end if;
  v_holders := coalesce((select json_agg(sluice.explain_holder(h.id, h.state, h.since, h.worker, p_deep and h.n = 1) order by h.n) from (
    select h.*, row_number() over (order by h.since, h.id) as n from sluice.lane_holders(v_lane, least(v_used + 1, 11)) h where h.id <> p_task.id) h), '[]');
  if v_level = 1 then
    -- A scope stands before its key.
    return array[json_build_object('kind', case when v_holders -> 0 ->> 'state' = 'failed' then 'blocked' else 'order' end, 'key', split_part(v_key, E'\x1f', -1),
      'scope', case when v_key like E'%\x1f%' then split_part(v_key, E'\x1f', 1) end, 'before', v_before, 'holder', v_holders -> 0)];
  end if;
  if v_level = 3 then
    return array[json_build_object('kind', 'limit', 'limit', (select l.name from sluice.limits l where l.id = v_limit), 'key', v_key, 'slots', v_cap, 'used', v_used, 'before', v_before, 'holders', v_holders)];
  end if;
  return v_shut || json_build_object('kind', 'window', 'run', n.run::text, 'node', n.name, 'slots', n.window_size, 'used', v_used, 'before', v_before, 'holders', v_holders);
end $$;

-- What it meets at a total, if that is full. p_turn: its place there, null if it is not there yet. Before it: all that
-- may take of these slots.
create function sluice.explain_gate(p_task sluice.task, p_gate int, p_turn bigint) returns json language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare v_cap int; v_used int := sluice.gate_used(p_gate); v_before int; v_gates int[];
begin
  select g.cap into v_cap from sluice.gate g where g.id = p_gate;
  -- A limit that was removed has no counter, and limits nothing.
  if v_cap is null or v_used < v_cap then return null; end if;
  if p_turn is not null then
    v_gates := array[p_gate] || array(select m.gate from sluice.gate_member m where m.total = p_gate limit 1000);
    v_before := (select count(*) from (
      select from sluice.gate_stream gs cross join unnest(v_gates) x(gate)
      cross join lateral (select from sluice.gated w where w.stream = gs.stream and w.gate = x.gate and (w.rank, w.turn) < (p_task.rank, p_turn) limit 10000) w
      where gs.gate = p_gate
      union all
      -- Of a type whose own limit it is, also those without totals, and with others.
      select from sluice.stream s cross join lateral (
        (select from sluice.ready r where r.stream = s.id and (r.rank, r.turn) < (p_task.rank, p_turn) limit 10000)
        union all (select from sluice.gated w where w.stream = s.id and w.gate <> all (v_gates) and (w.rank, w.turn) < (p_task.rank, p_turn) limit 10000)) w
      where s.gate = p_gate
      limit 10000) x);
  end if;
  return json_build_object('kind', 'limit', 'limit', (select l.name from sluice.limits l where l.id = p_gate), 'key', null, 'slots', v_cap, 'used', v_used, 'before', v_before,
    'holders', coalesce((select json_agg(sluice.explain_holder(h.id, 'running', h.started_at, h.worker, false) order by h.started_at, h.id) from (
      select r.id, r.started_at, r.worker from sluice.run r where r.gate = p_gate or r.stream_gate = p_gate or r.gate < 0 and p_gate = any (sluice.gates_of(r.gate))
      order by r.started_at, r.id limit 10) h), '[]'));
end $$;

-- p_deep: also why those do not run who hold what it waits for.
create function sluice.explain(p_id bigint, p_deep boolean default true) returns json language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  t sluice.task; s sluice.stream; k record; w record; x record; v_run json; v_blocks json; v_reasons json[] := '{}'; v_before int;
  -- Of how many lanes it holds a slot; whether it stands in the line of the next, and whether in that of its totals.
  v_held int; v_stands boolean := false; v_through boolean := true; v_parked boolean := false; v_over int; v_one json; v_turn bigint;
begin
  select * into t from sluice.task where id = p_id;
  if not found then return null; end if;
  select * into s from sluice.stream where id = t.stream;
  select y.state, y.attempt, y.started_at, y.finished_at, y.worker, y.outcome into k from sluice.task_state y where y.id = p_id;
  if k.state = 'running' then
    select json_build_object('worker', y.name, 'since', k.started_at, 'heardAt', y.expires_at - y.lease_ms * interval '1 ms', 'leaseUntil', y.expires_at,
      'silent', coalesce(sluice.is_silent(y.expires_at, y.lease_ms), true), 'lost', y.id is null or y.expires_at <= sluice.clock(), 'stopping', exists (select from sluice.stop p where p.id = p_id)) into v_run
    from (select k.worker as id) u left join sluice.worker y on y.id = u.id;
  elsif k.state = 'failed' then
    select json_build_object('key', split_part(t.lane_keys[1], E'\x1f', -1), 'scope', case when t.lane_keys[1] like E'%\x1f%' then split_part(t.lane_keys[1], E'\x1f', 1) end,
      'behind', (select count(*) from (select from sluice.wait y where y.lane = b.lane limit 10000) y)) into v_blocks from sluice.block b where b.id = p_id;
  elsif k.state in ('scheduled', 'waiting', 'ready') then
    select * into w from sluice.explain_workers(array[s.id]);
    v_held := coalesce(cardinality(t.lanes), 0);
    select c.run_at, c.held into x from sluice.scheduled c where c.id = p_id;
    if found then
      v_held := x.held; v_through := false;
      -- Once it is due a worker moves it, whichever comes first.
      if x.run_at > sluice.clock() then v_reasons := v_reasons || json_build_object('kind', 'scheduled', 'until', x.run_at); end if;
    end if;
    select p.held, (select json_agg(r.id::text order by r.id) from sluice.workflow_run r where r.id = any (p.runs) and r.finished_at is null) as runs into x from sluice.parent p where p.id = p_id;
    if found then
      v_held := x.held; v_through := false;
      if x.runs is not null then v_reasons := v_reasons || json_build_object('kind', 'children', 'runs', x.runs); end if;
    end if;
    select p.held into x from sluice.park p where p.id = p_id;
    if found then
      v_held := x.held; v_through := false; v_parked := true;
      -- That is why it has left the line.
      if w.live = 0 then v_reasons := v_reasons || sluice.explain_nobody(s, w.leaving); end if;
    end if;
    select q.held into x from unnest(t.lanes) l(id) cross join lateral (
      select y.held from sluice.wait y where y.lane = l.id and y.place = sluice.lane_place(l.id, t.rank) and y.id = p_id limit 1) q;
    if found then v_held := x.held; v_through := false; v_stands := true; end if;

    -- A number was lowered below what is out already: who holds a slot may not begin with it.
    v_over := sluice.over_lane(t.lanes[1:v_held]);
    if v_over is not null and exists (select from sluice.lowered) then v_reasons := v_reasons || sluice.explain_lane(t, v_over, false, p_deep); end if;
    for i in v_held + 1..coalesce(cardinality(t.lanes), 0) loop
      v_reasons := v_reasons || sluice.explain_lane(t, i, v_stands and i = v_held + 1, p_deep and cardinality(v_reasons) = 0);
    end loop;
    v_through := v_through and cardinality(v_reasons) = 0;
    v_turn := coalesce((select r.turn from sluice.ready r where t.lanes is not null and r.lanes is not null and r.id = p_id),
      (select g.turn from sluice.gated g where t.lanes is not null and g.lanes is not null and g.id = p_id), sluice.own_turn(p_id));
    for x in select distinct g.id from unnest(sluice.gates_of(t.gate) || s.gate) g(id) where g.id > 0 order by g.id loop
      v_one := sluice.explain_gate(t, x.id, case when v_through then v_turn end);
      if v_one is not null then v_reasons := v_reasons || v_one; end if;
    end loop;

    if s.paused then v_reasons := v_reasons || json_build_object('kind', 'paused', 'what', 'queue', 'name', s.queue); end if;
    if w.live = 0 and not v_parked then v_reasons := v_reasons || sluice.explain_nobody(s, w.leaving); end if;
    select y.name, cardinality(h.workers) as crashes into x from sluice.suspect c left join sluice.crash h on h.id = c.id
      left join sluice.worker y on y.id = c.reserved_by and y.expires_at > sluice.clock() where c.id = p_id;
    if found then v_reasons := v_reasons || json_build_object('kind', 'suspect', 'crashes', coalesce(x.crashes, 3), 'worker', x.name); end if;
    -- What its workers take first of its own type.
    if v_through then
      v_before := (select count(*) from (
        (select from sluice.ready r where t.gate = 0 and r.stream = t.stream and (r.rank, r.turn) < (t.rank, v_turn) limit 10000)
        union all (select from sluice.gated g where t.gate <> 0 and g.stream = t.stream and g.gate = t.gate and (g.rank, g.turn) < (t.rank, v_turn) limit 10000)) y);
    end if;
    if w.live > 0 and w.available <= 0 then
      if w.silent > 0 then v_reasons := v_reasons || json_build_object('kind', 'silent', 'workers', w.silent, 'heardAt', w.heard_at); end if;
      if w.stopped > 0 then v_reasons := v_reasons || json_build_object('kind', 'pressure', 'workers', w.stopped, 'reasons', w.pressure); end if;
      if w.silent + w.stopped < w.live then v_reasons := v_reasons || json_build_object('kind', 'busy', 'workers', w.live - w.silent - w.stopped, 'capacity', w.capacity, 'before', v_before); end if;
    end if;
    if cardinality(v_reasons) = 0 then v_reasons := array[json_build_object('kind', 'next', 'before', coalesce(v_before, 0))]; end if;
  end if;
  return json_build_object('task', p_id::text, 'type', s.type, 'queue', s.queue, 'state', k.state, 'at', sluice.clock(), 'createdAt', t.created_at, 'finishedAt', k.finished_at,
    'attempt', k.attempt, 'attemptsMax', t.attempts_max, 'error', case when k.state = 'failed' then k.outcome ->> 'message' end, 'blocks', v_blocks, 'run', v_run, 'reasons', array_to_json(v_reasons),
    'workflow', (select json_build_object('run', y.run::text, 'node', coalesce(p.name, r.name), 'item', case when n.kind = 'e' then y.item end)
      from sluice.workflow_task y join sluice.workflow_run r on r.id = y.run join sluice.workflow_node n on n.run = y.run and n.node = y.node
      left join sluice.workflow_step p on p.graph = r.graph and p.node = y.node where y.id = p_id));
end $$;
