-- Pause, windows and events: what changes a run while it runs.

-- An event for a run: only inserts, so it may live in a user's transaction. It is kept until a node takes it.
-- False if there is no such run, or it is over. One that no node of its graph waits for is refused, for it would be lost.
-- About a thousand may be kept for one run: those of transactions that are under way at the same moment do not see each
-- other. p_workflow: whose run the sender takes it for, null if he does not say.
create function sluice.workflow_send(p_run bigint, p_name text, p_payload json, p_workflow text default null) returns boolean language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_graph int; v_workflow text; v_events text;
begin
  if coalesce(length(p_name), 0) not between 1 and 128 then perform sluice.refuse('invalid_name', 'the name of an event has 1 to 128 characters'); end if;
  perform sluice.check_input(p_payload);
  select r.graph into v_graph from sluice.workflow_run r where r.id = p_run and r.finished_at is null;
  if not found then return false; end if;
  if p_workflow is not null then
    v_workflow := (select g.name from sluice.workflow_graph g where g.id = v_graph);
    if v_workflow is distinct from p_workflow then
      perform sluice.refuse('invalid_option', format('run %s is of %s, not of workflow %s', p_run, coalesce('workflow ' || to_json(v_workflow), 'a handler''s map'), to_json(p_workflow))); end if;
  end if;
  if not exists (select from sluice.workflow_step s where s.graph = v_graph and s.event = p_name) then
    v_events := (select string_agg(to_json(x.event)::text, ', ' order by x.node) from (
      select s.event, min(s.node) as node from sluice.workflow_step s where s.graph = v_graph and s.event is not null group by s.event order by 2 limit 10) x);
    perform sluice.refuse('unknown_event', format('no node of run %s waits for an event %s: %s', p_run, to_json(p_name), coalesce('its events are ' || v_events, 'it has none')));
  end if;
  if exists (select from sluice.workflow_event where run = p_run offset 999) then
    perform sluice.refuse('too_many_events', format('run %s has 1,000 events that no node has taken', p_run)); end if;
  insert into sluice.workflow_event (run, name, payload) values (p_run, p_name, coalesce(p_payload, 'null'));
  insert into sluice.workflow_note (run) values (p_run);
  perform sluice.look_by(sluice.clock() + interval '100 milliseconds');
  return true;
end $$;

-- Lanes of these runs' windows follow what lane_cap says. Only under the barrier alone, like limits.
create function sluice.workflow_apply(p_runs bigint[]) returns void language plpgsql as $$
begin
  update sluice.lane l set cap = sluice.lane_cap(l.id, -2) where l.id = any (array(select lane from sluice.workflow_node where run = any (p_runs) and state = 'r' and lane is not null order by lane));
  insert into sluice.dirty (lane, limit_id) select l.id, -2 from sluice.lane l where l.used < l.cap and l.id = any (array(select lane from sluice.workflow_node where run = any (p_runs) and state = 'r' and lane is not null));
  insert into sluice.lowered (limit_id) select -2 where exists (select from sluice.lane l where l.used > l.cap and l.id = any (array(select lane from sluice.workflow_node where run = any (p_runs) and lane is not null))) on conflict (limit_id) do update set turn = 0;
  perform sluice.ring(array(select distinct stream from sluice.workflow_node where run = any (p_runs) and state = 'r' and stream is not null), 50);
end $$;

-- The barrier alone and then the rows of these runs, by id. Whoever holds one may stand still, and all workers wait behind
-- the barrier: so it is let go again while we wait, which is what the rollback of a subtransaction does. False if there
-- is no such run.
create function sluice.workflow_alone(p_runs bigint[]) returns boolean language plpgsql set lock_timeout = '100ms' as $$
declare v_barred boolean;
begin
  for v_try in 1..20 loop
    begin
      v_barred := false;
      perform sluice.barrier_alone();
      v_barred := true;
      perform from sluice.workflow_run where id = any (p_runs) order by id for update;
      return found;
    exception when lock_not_available then
      -- guard: the barrier is let go -> test/postgres/workflow/races.test.ts: "while another holds its run, a pause stops no worker, and says so in the end"
      if not v_barred then raise; end if;
    end;
    perform pg_sleep(0.25);
  end loop;
  perform sluice.refuse('database_busy', 'another transaction has held this run for seconds: ask again');
end $$;

-- While a run is paused no node of it begins, nothing is placed and nothing passes a window; what is ready outside of
-- a window, or runs, goes on. What its tasks have fanned out follows (workflow_follow, by the caller or a keeper). False if
-- there is no such run, or it is over.
create function sluice.workflow_pause(p_run bigint, p_paused boolean) returns boolean language plpgsql set lock_timeout = '2s' as $$
declare v_nodes smallint[];
begin
  if not sluice.workflow_alone(array[p_run]) then return false; end if;
  update sluice.workflow_run set paused = p_paused where id = p_run and finished_at is null;
  if not found then return false; end if;
  perform sluice.workflow_apply(array[p_run]);
  perform sluice.workflow_lead(array[p_run], p_run);
  if p_paused then
    -- guard: what is to be placed is held -> test/postgres/workflow/place.test.ts: "nothing of a paused run is placed"
    update sluice.workflow_node set state = 'h' where run = p_run and state = 'u';
    -- One in another's hand is being placed: whoever does it finds that it is not wanted now.
    delete from sluice.workflow_unplaced where ctid = any (array(select ctid from sluice.workflow_unplaced where run = p_run for update skip locked));
    return true;
  end if;
  v_nodes := array(select node from sluice.workflow_node where run = p_run and state = 'h' order by node);
  if v_nodes = '{}' then return true; end if;
  perform sluice.workflow_set_off(array_fill(p_run, array[cardinality(v_nodes)]), v_nodes);
  return true;
end $$;

-- What tasks of these runs have fanned out, and is not over, is to be paused as their run is. The caller has locked the runs,
-- and whoever makes one locks its run too: so it is seen here, or has taken the state over by itself.
create function sluice.workflow_lead(p_runs bigint[], p_root bigint) returns void language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  insert into sluice.workflow_lead (run, root) select u.run, p_root from unnest(p_runs) u(run)
  where exists (select from sluice.workflow_run m where m.outer_run = u.run and m.finished_at is null)
  on conflict (run) do update set root = excluded.root;
end $$;

-- After a pause or a resume: what tasks of a run have fanned out follows it, at most p_max in one transaction, so that
-- workers wait for a piece and not for all; then what the tasks of that have. p_root: what was paused, null for whatever
-- somebody has left undone. The state is read, not given: of two who pause and resume at the same moment, the later one
-- is followed by all. more: call again. None moved and more: others have the rest in hand.
create function sluice.workflow_follow(p_root bigint, p_max int, out moved int, out more boolean) language plpgsql
set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_run bigint; v_root bigint; v_maps bigint[]; v_held bigint[];
begin
  moved := 0; more := exists (select from sluice.workflow_lead x where p_root is null or x.root = p_root);
  if not more then return; end if;
  perform sluice.barrier_alone();
  select x.run, x.root into v_run, v_root from sluice.workflow_lead x where p_root is null or x.root = p_root order by x.run limit 1 for update;
  if not found then more := false; return; end if;
  v_maps := array(select m.id from sluice.workflow_run m where m.outer_run = v_run and m.finished_at is null
    and m.paused <> (select o.paused from sluice.workflow_run o where o.id = v_run) order by m.id limit p_max);
  -- Who makes one, or places its items, has it in hand without the barrier, and may stand still.
  v_held := array(select m.id from sluice.workflow_run m where m.id = any (v_maps) order by m.id for update skip locked);
  update sluice.workflow_run m set paused = not m.paused where m.id = any (v_held);
  moved := cardinality(v_held);
  if moved > 0 then
    perform sluice.workflow_apply(v_held);
    perform sluice.workflow_lead(v_held, v_root);
  end if;
  if moved = cardinality(v_maps) and moved < p_max then
    delete from sluice.workflow_lead x where x.run = v_run;
    more := exists (select from sluice.workflow_lead x where p_root is null or x.root = p_root);
  end if;
end $$;

-- Another window for an each, from the moment this returns. Lowered, it lets those that run finish. False if
-- the node has no window, or is over.
create function sluice.workflow_window(p_run bigint, p_node text, p_window int) returns boolean language plpgsql set lock_timeout = '2s' as $$
declare v_node smallint;
begin
  if p_window is null or p_window < 1 then perform sluice.refuse('invalid_option', 'a window is at least 1'); end if;
  if not sluice.workflow_alone(array[p_run]) then return false; end if;
  select n.node into v_node from sluice.workflow_run r join sluice.workflow_node n on n.run = r.id left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  where r.id = p_run and coalesce(s.name, r.name) = p_node and n.lane is not null and n.state in ('u', 'h', 'r');
  if not found then return false; end if;
  update sluice.workflow_node set window_size = p_window where run = p_run and node = v_node;
  perform sluice.workflow_apply(array[p_run]);
  return true;
end $$;
