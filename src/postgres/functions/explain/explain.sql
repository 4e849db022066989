-- Why a task does not run: what it meets on its way to a worker, in that order; the first is what holds it now.
--
-- A look, without a lock. All functions here are stable: they share the snapshot of whoever asks, so a task is found
-- in one place, and what it waits for is what it waited for at that moment. Who holds a slot of a lane is in no index,
-- for every claim would pay for it: the holders are looked for where they mostly are first, and no further than needed.
-- Lines are counted up to 10,000. The numbers in JSON are few and small, but for ids, which are text.

-- p_deep: also why those do not run who hold what it waits for.
create or replace function sluice.explain(p_id bigint, p_deep boolean default true) returns json language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
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
      'behind', (select count(*) from (select from sluice.waiting y where y.lane = b.lane limit 10000) y)) into v_blocks from sluice.block b where b.id = p_id;
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
    select p.held into x from sluice.parked p where p.id = p_id;
    if found then
      v_held := x.held; v_through := false; v_parked := true;
      -- That is why it has left the line.
      if w.live = 0 then v_reasons := v_reasons || sluice.explain_nobody(s, w.leaving); end if;
    end if;
    select q.held into x from unnest(t.lanes) l(id) cross join lateral (
      select y.held from sluice.waiting y where y.lane = l.id and y.place = sluice.lane_place(l.id, t.rank) and y.id = p_id limit 1) q;
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
    for x in select distinct g.id from unnest(sluice.gates_of(t.gate) /* guard:gate */ || s.gate /* end */) g(id) where g.id > 0 order by g.id loop
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
