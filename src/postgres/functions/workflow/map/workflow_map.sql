-- Fan-outs of handlers, and their tasks that sleep until these are over.

-- Opens a fan-out of a handler: a run with one node, under its task and a name. Found again when the handler runs
-- again. If it is fresh, the caller places the tasks (workflow_place with node 1) and says so (workflow_placed), in the
-- same transaction. Only the worker that holds the task may do so; if one that has lost it since has not committed yet,
-- this waits for it and finds what it made. Returns the run, and whether it is fresh.
create or replace function sluice.workflow_map(
  p_worker bigint, p_id bigint, p_claim bigint, p_name text, p_stream int, p_total int, p_window int, p_policy text,
  out run bigint, out fresh boolean
) language plpgsql as $$
declare v_empty boolean := p_total = 0;
begin
  perform sluice.workflow_limit_idle();
  perform sluice.require_lease(p_worker);
  perform from sluice.running r where r.id = p_id and r.claim = p_claim and r.worker = p_worker;
  if not found then
    perform sluice.refuse('lease_lost', 'the claim of this task was lost: another worker may run it');
  end if;
  select r.id into run from sluice.workflow_run r where r.parent = p_id and r.name = p_name;
  fresh := not found;
  if not fresh then
    return;
  end if;
  perform sluice.workflow_activate();
  run := nextval('sluice.workflow_id');
  -- guard: a map is opened once -> test/postgres/workflow/races.test.ts: "one of two sessions that open the same map at once creates it, and the other finds it"
  insert into sluice.workflow_run (id, open, input, bytes_max, parent, name, outer_run, state, finished_at)
  values (run, case when v_empty then 0 else 1 end, 'null', 1048576, p_id, p_name,
    (select w.run from sluice.workflow_task w where w.id = p_id),
    case when v_empty then 'succeeded' else 'running' end::sluice.state, case when v_empty then sluice.clock() end)
  /* guard:once */ on conflict do nothing /* end */;
  if not found then
    select r.id, false into run, fresh from sluice.workflow_run r where r.parent = p_id and r.name = p_name;
    return;
  end if;
  insert into sluice.workflow_node (
    run, node, kind, policy, state, blocked, total, window_size, lane, stream, started_at, finished_at)
  values (run, 1, 'each',
    p_policy::sluice.node_policy,
    case when v_empty then 'succeeded' else 'placing' end::sluice.state, 0, p_total, p_window,
    case when p_window is not null then (sluice.window_level()::bigint << 60) | nextval('sluice.workflow_lane') end,
    p_stream, sluice.clock(), case when v_empty then sluice.clock() end);
end $$;
