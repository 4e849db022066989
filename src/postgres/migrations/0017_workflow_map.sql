-- Fan-outs that handlers make, and their tasks that sleep until these are over.

-- A handler fans out: a run of its own with one node, under its task and a name. Found again when the handler
-- runs again. New: the caller places the tasks (workflow_place with node 1) and says so (workflow_placed), in
-- the same transaction. Only whoever holds the task may do so; one who has lost it since and has not committed yet is
-- waited for, and what he made is found.
create function sluice.workflow_map(p_worker bigint, p_id bigint, p_claim bigint, p_name text, p_stream int, p_total int, p_window int, p_policy text, out run bigint, out fresh boolean)
language plpgsql as $$
begin
  perform sluice.workflow_impatient();
  perform sluice.require_lease(p_worker);
  perform from sluice.run r where r.id = p_id and r.claim = p_claim and r.worker = p_worker;
  if not found then perform sluice.refuse('lease_lost', 'this task is no longer ours'); end if;
  select r.id into run from sluice.workflow_run r where r.parent = p_id and r.name = p_name;
  fresh := not found;
  if not fresh then return; end if;
  perform sluice.workflow_activate();
  run := nextval('sluice.workflow_id');
  -- guard: a map is opened once -> test/postgres/workflow/races.test.ts: "of two that open the same map at the same moment one makes it and the other finds it"
  insert into sluice.workflow_run (id, open, input, bytes_max, parent, name, outer_run, state, finished_at)
  values (run, case when p_total = 0 then 0 else 1 end, 'null', 1048576, p_id, p_name, (select w.run from sluice.workflow_task w where w.id = p_id), case when p_total = 0 then 's' else 'r' end::"char", case when p_total = 0 then sluice.clock() end)
  on conflict do nothing;
  if not found then
    select r.id, false into run, fresh from sluice.workflow_run r where r.parent = p_id and r.name = p_name;
    return;
  end if;
  insert into sluice.workflow_node (run, node, kind, policy, state, blocked, total, window_size, lane, stream, started_at, finished_at)
  values (run, 1, 'e', case p_policy when 'finish' then 'n' when 'collect' then 'o' else 'a' end::"char", case when p_total = 0 then 's' else 'u' end::"char", 0, p_total, p_window,
    case when p_window is not null then (2::bigint << 60) | nextval('sluice.workflow_lane') end, p_stream, sluice.clock(), case when p_total = 0 then sluice.clock() end);
end $$;

-- A handler's fan-out that exists, and what it was made of.
create function sluice.workflow_map_find(p_parent bigint, p_name text) returns table (run bigint, stream int, digest text, state text) language sql stable as $$
  select r.id, n.stream, r.input #>> '{}', case r.state when 'r' then 'running' when 's' then 'succeeded' when 'f' then 'failed' else 'cancelled' end
  from sluice.workflow_run r join sluice.workflow_node n on n.run = r.id and n.node = 1 where r.parent = p_parent and r.name = p_name
$$;

-- The digest of its inputs, written by whoever makes it, in the same transaction.
create function sluice.workflow_map_mark(p_run bigint, p_digest text) returns void language plpgsql as $$
begin
  update sluice.workflow_run set input = to_json(p_digest) where id = p_run and parent is not null and input::text = 'null';
end $$;

-- Tasks that sleep until their children are through go on: they join their next lane, or are ready.
create function sluice.workflow_wake(p_ids bigint[]) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_streams int[]; v_n int;
begin
  with gone as (
    delete from sluice.parent where ctid = any (array(select x.tid from unnest(p_ids) u(id) cross join lateral (
      select p.ctid as tid from sluice.parent p where p.id = u.id for update skip locked) x)) returning *
  ), back as materialized (
    select g.id, g.attempt, g.held, t.stream, t.rank, t.gate, t.lanes, t.lane_limits from gone g cross join lateral (select * from sluice.task where id = g.id limit 1) t
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes) select id, stream, rank, attempt, sluice.own_turn(id), lanes from back where held >= coalesce(cardinality(lanes), 0) and gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes) select id, stream, gate, rank, attempt, sluice.own_turn(id), lanes from back where held >= coalesce(cardinality(lanes), 0) and gate <> 0
  ), to_wait as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, attempt, held, stream, gate, lanes, lane_limits from back where held < cardinality(lanes)
  ), joins as (
    insert into sluice.dirty (lane, limit_id) select lanes[held + 1], max(lane_limits[held + 1]) from back where held < cardinality(lanes) group by 1
  )
  select count(*), array_agg(distinct stream) into v_n, v_streams from back;
  if v_n > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v_streams, v_n); end if;
end $$;
