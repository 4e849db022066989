-- Why a task does not run: what it meets on its way to a worker, in that order; the first is what holds it now.
--
-- A look, without a lock. All functions here are stable: they share the snapshot of whoever asks, so a task is found
-- in one place, and what it waits for is what it waited for at that moment. Who holds a slot of a lane is in no index,
-- for every claim would pay for it: the holders are looked for where they mostly are first, and no further than needed.
-- Lines are counted up to 10,000. The numbers in JSON are few and small, but for ids, which are text.

create function sluice.lane_holders(p_lane bigint, p_max int) returns table (id bigint, state text, since timestamptz, worker bigint)
language sql stable set jit = off set max_parallel_workers_per_gather = 0 as $$
  select * from (
    select r.id, 'running', r.started_at, r.worker from sluice.run r where r.lanes @> array[p_lane]
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

create function sluice.explain_holder(p_id bigint, p_state text, p_since timestamptz, p_worker bigint) returns json language sql stable as $$
  select json_build_object('task', p_id::text, 'type', s.type, 'state', p_state, 'since', p_since, 'worker', (select w.name from sluice.worker w where w.id = p_worker))
  from sluice.task t join sluice.stream s on s.id = t.stream where t.id = p_id
$$;

-- Slots of a gate that are out.
create function sluice.gate_used(p_gate int) returns int language sql stable as
$$ select (g.used - coalesce((select sum(c.n) from sluice.credit c where c.gate = g.id), 0))::int from sluice.gate g where g.id = p_gate $$;

-- The workers that could claim of these streams, as of their last heartbeats. stopped: for another reason than that they
-- have no room, which is told by what is available.
create function sluice.explain_workers(p_streams int[], out live int, out leaving int, out capacity int, out available int, out stopped int, out pressure text[])
language sql stable as $$
  with able as (
    select draining, capacity_max, capacity_available, case when w.pressure = 'stopped' then array_remove(pressure_reasons, 'permits') else '{}' end as reasons
    from sluice.worker w where streams && p_streams and expires_at > sluice.clock()
  )
  select count(*) filter (where not draining), count(*) filter (where draining), coalesce(sum(capacity_max) filter (where not draining), 0)::int,
    coalesce(sum(capacity_available) filter (where not draining and reasons = '{}'), 0)::int, count(*) filter (where not draining and reasons <> '{}'),
    (select coalesce(array_agg(distinct r order by r), '{}') from able a cross join lateral unnest(a.reasons) r where not a.draining)
  from able
$$;

-- What a task meets at its lane of this number. p_here: it stands in that line; else it will, and only a full one counts.
create function sluice.explain_lane(p_task sluice.task, p_at int, p_here boolean) returns json language plpgsql stable as $$
declare
  v_lane bigint := p_task.lanes[p_at]; v_level int := v_lane >> 60; v_limit int := p_task.lane_limits[p_at]; v_key text := p_task.lane_keys[p_at];
  v_used int; v_cap int; v_before int; v_holders json; n record;
begin
  select l.used, case when v_level = 3 then sluice.lane_cap(v_lane, -2) else l.cap end into v_used, v_cap from sluice.lane l where l.id = v_lane;
  v_used := coalesce(v_used, 0); v_cap := coalesce(v_cap, sluice.lane_cap(v_lane, v_limit));
  if not p_here and v_used < v_cap then return null; end if;
  if p_here then
    v_before := (select count(*) from (select from sluice.wait w where w.lane = v_lane and (w.place, w.id) < (sluice.lane_place(v_lane, p_task.rank), p_task.id) limit 10000) x);
    -- A slot is free, or was freed just now: whoever claims next hands it on.
    if v_used < v_cap then return json_build_object('kind', 'next', 'before', v_before); end if;
  end if;
  v_holders := coalesce((select json_agg(sluice.explain_holder(h.id, h.state, h.since, h.worker) order by h.since, h.id) from sluice.lane_holders(v_lane, least(v_used, 10)) h), '[]');
  if v_level = 1 then return json_build_object('kind', 'order', 'key', v_key, 'before', v_before, 'holder', v_holders -> 0); end if;
  if v_level = 2 then
    return json_build_object('kind', 'limit', 'limit', (select l.name from sluice.limits l where l.id = v_limit), 'key', v_key,
      'slots', v_cap, 'used', v_used, 'before', v_before, 'holders', v_holders);
  end if;
  select k.run, r.paused, k.failing or r.stopping as stopping, k.window_size, coalesce(s.name, r.name) as name into n
  from sluice.workflow_node k join sluice.workflow_run r on r.id = k.run left join sluice.workflow_step s on s.graph = r.graph and s.node = k.node where k.lane = v_lane;
  if n.stopping then return json_build_object('kind', 'stopping', 'run', n.run::text); end if;
  if n.paused then return json_build_object('kind', 'paused', 'what', 'run', 'name', n.run::text); end if;
  return json_build_object('kind', 'window', 'run', n.run::text, 'node', n.name, 'slots', n.window_size, 'used', v_used, 'before', v_before, 'holders', v_holders);
end $$;

-- What it meets at a total, if that is full. Before it: whoever else may take of these slots.
create function sluice.explain_gate(p_task sluice.task, p_gate int, p_here boolean) returns json language plpgsql stable as $$
declare v_cap int; v_used int := sluice.gate_used(p_gate); v_before int;
begin
  select g.cap into v_cap from sluice.gate g where g.id = p_gate;
  -- A limit that was removed has no counter, and limits nothing.
  if v_cap is null or v_used < v_cap then return null; end if;
  if p_here then
    v_before := (select count(*) from (
      select from sluice.gate_stream gs
      cross join lateral (select p_gate as gate union all select s.id from sluice.gate_set s where s.gates @> array[p_gate]) x
      cross join lateral (select from sluice.gated w where w.stream = gs.stream and w.gate = x.gate and (w.rank, w.id) < (p_task.rank, p_task.id) limit 10000) w
      where gs.gate = p_gate
      union all
      select from sluice.stream s cross join lateral (select from sluice.ready r where r.stream = s.id and (r.rank, r.id) < (p_task.rank, p_task.id) limit 10000) r where s.gate = p_gate
      limit 10000) x);
  end if;
  return json_build_object('kind', 'limit', 'limit', (select l.name from sluice.limits l where l.id = p_gate), 'key', null, 'slots', v_cap, 'used', v_used, 'before', v_before,
    'holders', coalesce((select json_agg(sluice.explain_holder(h.id, 'running', h.started_at, h.worker) order by h.started_at, h.id) from (
      select r.id, r.started_at, r.worker from sluice.run r where r.gate = p_gate or r.stream_gate = p_gate or r.gate < 0 and p_gate = any (sluice.gates_of(r.gate))
      order by r.started_at, r.id limit 10) h), '[]'));
end $$;

create function sluice.explain(p_id bigint) returns json language plpgsql stable set jit = off as $$
declare
  t sluice.task; s sluice.stream; w record; v_state text; v_run json; v_reasons json[] := '{}'; v_one json;
  -- Lanes of which it holds a slot, and whether it stands in the line of the next; at_gate: in that of its totals.
  v_held int := 0; v_stands boolean := false; v_at_gate boolean := false; v_before int; v_over int; x record;
begin
  select * into t from sluice.task where id = p_id;
  if not found then return null; end if;
  select * into s from sluice.stream where id = t.stream;
  select k.state, k.started_at, k.worker into x from sluice.task_state k where k.id = p_id;
  v_state := x.state;
  if v_state = 'running' then
    select json_build_object('worker', k.name, 'since', x.started_at, 'leaseUntil', k.expires_at, 'lost', k.id is null or k.expires_at <= sluice.clock(),
      'stopping', exists (select from sluice.stop p where p.id = p_id)) into v_run
    from (select x.worker as id) u left join sluice.worker k on k.id = u.id;
  elsif v_state in ('scheduled', 'waiting', 'ready') then
    v_held := coalesce(cardinality(t.lanes), 0);
    select c.run_at, c.attempt, c.held into x from sluice.scheduled c where c.id = p_id;
    if found then
      v_held := x.held;
      v_reasons := v_reasons || json_build_object('kind', 'scheduled', 'until', x.run_at, 'attempt', x.attempt);
    end if;
    select p.held, p.runs into x from sluice.parent p where p.id = p_id;
    if found then
      v_held := x.held;
      v_reasons := v_reasons || json_build_object('kind', 'children', 'runs', (select json_agg(r.id::text order by r.id) from sluice.workflow_run r where r.id = any (x.runs) and r.finished_at is null));
    end if;
    select p.held into x from sluice.park p where p.id = p_id;
    if found then v_held := x.held; end if;
    select q.held into x from unnest(t.lanes) l(id) cross join lateral (
      select y.held from sluice.wait y where y.lane = l.id and y.place = sluice.lane_place(l.id, t.rank) and y.id = p_id limit 1) q;
    if found then v_held := x.held; v_stands := true; end if;

    for i in v_held + 1..coalesce(cardinality(t.lanes), 0) loop
      v_one := sluice.explain_lane(t, i, v_stands and i = v_held + 1);
      if v_one is not null then v_reasons := v_reasons || v_one; end if;
    end loop;
    -- A number was lowered below what is out already: who holds a slot may not begin with it.
    v_over := sluice.over_lane(t.lanes[1:v_held]);
    if v_over is not null and exists (select from sluice.lowered) then
      v_one := sluice.explain_lane(t, v_over, false);
      if v_one is not null then v_reasons := v_reasons || v_one; end if;
    end if;
    v_at_gate := v_held = coalesce(cardinality(t.lanes), 0) and cardinality(v_reasons) = 0;
    for x in select distinct g.id from unnest(sluice.gates_of(t.gate) || s.gate) g(id) where g.id > 0 order by g.id loop
      v_one := sluice.explain_gate(t, x.id, v_at_gate);
      if v_one is not null then v_reasons := v_reasons || v_one; end if;
    end loop;

    select c.reserved_by, cardinality(k.workers) as crashes into x from sluice.suspect c left join sluice.crash k on k.id = c.id where c.id = p_id;
    if found then
      v_reasons := v_reasons || json_build_object('kind', 'suspect', 'crashes', coalesce(x.crashes, 3), 'worker', (select k.name from sluice.worker k where k.id = x.reserved_by));
    end if;
    if s.paused then v_reasons := v_reasons || json_build_object('kind', 'paused', 'what', 'queue', 'name', s.queue); end if;
    select * into w from sluice.explain_workers(array[s.id]);
    if w.live = 0 then
      v_reasons := v_reasons || json_build_object('kind', 'noWorker', 'leaving', w.leaving);
    elsif w.stopped = w.live then
      v_reasons := v_reasons || json_build_object('kind', 'pressure', 'workers', w.live, 'reasons', w.pressure);
    elsif w.available <= 0 then
      v_reasons := v_reasons || json_build_object('kind', 'busy', 'workers', w.live, 'capacity', w.capacity);
    end if;
    -- Nobody else holds it. Before it: what its workers take first of its own type.
    if cardinality(v_reasons) = 0 then
      v_before := (select count(*) from (
        (select from sluice.ready r where t.gate = 0 and r.stream = t.stream and (r.rank, r.id) < (t.rank, t.id) limit 10000)
        union all (select from sluice.gated g where t.gate <> 0 and g.stream = t.stream and g.gate = t.gate and (g.rank, g.id) < (t.rank, t.id) limit 10000)) y);
      v_reasons := array[json_build_object('kind', 'next', 'before', v_before)];
    end if;
  end if;
  return json_build_object('task', p_id::text, 'type', s.type, 'queue', s.queue, 'state', v_state, 'run', v_run, 'reasons', array_to_json(v_reasons),
    'workflow', (select json_build_object('run', k.run::text, 'node', coalesce(p.name, r.name), 'item', case when n.kind = 'e' then k.item end)
      from sluice.workflow_task k join sluice.workflow_run r on r.id = k.run join sluice.workflow_node n on n.run = k.run and n.node = k.node
      left join sluice.workflow_step p on p.graph = r.graph and p.node = k.node where k.id = p_id));
end $$;
