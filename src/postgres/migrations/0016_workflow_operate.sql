-- Operate: cancel, halt, timers, events, pause, windows, retry, look, prune.

-- 'cancelled': it is over. 'asked': what runs has been asked to stop, what waits is being cancelled. 'over',
-- 'unknown'. What has not begun never begins, from the moment this returns.
create function sluice.workflow_cancel(p_run bigint, p_reason text default null) returns text language plpgsql
set lock_timeout = '10s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare r sluice.workflow_run; v_nodes smallint[];
begin
  perform sluice.barrier_shared();
  select * into r from sluice.workflow_run where id = p_run for update;
  if not found then return 'unknown'; end if;
  if r.finished_at is not null then return 'over'; end if;
  if r.stopping then return 'asked'; end if;
  update sluice.workflow_run set stopping = true, outcome = json_build_object('reason', p_reason) where id = p_run;
  -- In the same lock: what has no task is over here and now.
  with gone as (
    update sluice.workflow_node set state = 'c', finished_at = sluice.clock() where run = p_run and (state in ('p', 'h', 'u') or state = 'r' and kind in ('s', 'v')) returning node
  ) select array_agg(node) into v_nodes from gone;
  delete from sluice.workflow_timer where run = p_run;
  -- One in another's hand is being placed: whoever does it finds that nobody wants it any more.
  delete from sluice.workflow_unplaced where ctid = any (array(select ctid from sluice.workflow_unplaced where run = p_run for update skip locked));
  update sluice.workflow_node set failing = true where run = p_run and state = 'r' and kind = 'e';
  insert into sluice.workflow_halt as h (run, node, reason) select p_run, n.node, p_reason from sluice.workflow_node n where n.run = p_run and n.state = 'r'
  on conflict (run, node) do nothing;
  if v_nodes is not null then
    perform sluice.workflow_cascade(array_fill(p_run, array[cardinality(v_nodes)]), v_nodes);
  end if;
  perform sluice.workflow_halt_run(p_run, 1000);
  return case when (select finished_at from sluice.workflow_run where id = p_run) is null then 'asked' else 'cancelled' end;
end $$;

-- Cancels tasks of nodes that are to halt, at most p_max new ones of each. The caller holds the run's lock. Returns
-- how many were looked at for the first time or came to their end by it.
create function sluice.workflow_halt_run(p_run bigint, p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare h sluice.workflow_halt; v_ids bigint[]; v_last int; v_gone bigint[]; v_pending bigint[]; v_n int := 0;
begin
  for h in select * from sluice.workflow_halt x where x.run = p_run order by x.node for update skip locked loop
    v_ids := '{}'; v_last := null;
    if h.item is not null then
      select coalesce(array_agg(w.id), '{}'), case when count(*) = p_max then max(w.item) end into v_ids, v_last
      from (select k.id, k.item from sluice.workflow_task k where k.run = p_run and k.node = h.node and k.item > h.item order by k.item limit p_max) w;
    end if;
    select array_agg(c.id) filter (where c.answer = 'cancelled'), coalesce(array_agg(c.id) filter (where c.answer in ('asked', 'moving')), '{}') into v_gone, v_pending
    from sluice.cancel(h.pending || v_ids, h.reason, false) c;
    v_n := v_n + cardinality(v_ids) + case when cardinality(v_ids) = 0 then coalesce(cardinality(v_gone), 0) else 0 end;
    if v_last is null and v_pending = '{}' then
      delete from sluice.workflow_halt where run = p_run and node = h.node;
    else
      update sluice.workflow_halt set item = v_last, pending = v_pending where run = p_run and node = h.node;
    end if;
    if v_gone is not null then
      perform sluice.workflow_ended_elsewhere(v_gone, array_fill('c'::"char", array[cardinality(v_gone)]));
    end if;
  end loop;
  return v_n;
end $$;

-- What must happen without anyone asking: notes, timers, halts, children of parents that ended. Any process may
-- call it at any time; each takes what no other has in hand. next_ms: until the next timer, null if there is none.
create function sluice.workflow_keep(p_max int, out moved int, out next_ms bigint, out unplaced boolean)
language plpgsql set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_now timestamptz := sluice.clock(); v record; v_runs bigint[]; v_nodes smallint[]; v_run bigint;
begin
  moved := 0; unplaced := false;
  if not exists (select from sluice.workflow_run where finished_at is null) then return; end if;
  perform sluice.barrier_shared();
  if exists (select from sluice.workflow_note) then
    select * into v from sluice.workflow_notes(p_max);
    moved := moved + v.taken;
    if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
  end if;
  -- A run's row first, then its timers: whoever holds the run may delete them.
  if exists (select from sluice.workflow_timer where due_at <= v_now) then
    v_runs := array(select r.id from sluice.workflow_run r where r.id = any (array(select t.run from sluice.workflow_timer t where t.due_at <= v_now order by t.due_at limit p_max))
      order by r.id for update skip locked);
    with rung as (
      delete from sluice.workflow_timer t where t.run = any (v_runs) and t.due_at <= v_now returning t.run, t.node
    ), over as (
      update sluice.workflow_node n set state = case when n.kind = 's' then 's' else 'f' end::"char", finished_at = v_now,
        outcome = case when n.kind = 'v' then sluice.workflow_error('timeout', 'the event did not come in time') end
      from rung where n.run = rung.run and n.node = rung.node and n.state = 'r' returning n.run, n.node
    )
    select array_agg(run), array_agg(node) into v_runs, v_nodes from over;
    if v_runs is not null then
      select * into v from sluice.workflow_cascade(v_runs, v_nodes);
      moved := moved + cardinality(v_runs);
      if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
    end if;
  end if;
  -- First those that have tasks nobody has looked at; else by lot, so that none is left out for ever.
  for v_run in select h.run from sluice.workflow_halt h group by h.run order by bool_and(h.item is null), random() limit 4 loop
    perform from sluice.workflow_run where id = v_run for update skip locked;
    if found then moved := moved + sluice.workflow_halt_run(v_run, p_max); end if;
  end loop;
  -- Asked to stop at the moment in which they went to sleep: nobody has told them.
  for v in select s.id, min(s.reason) as reason from sluice.stop s cross join lateral (select p.id from sluice.parent p where p.id = s.id limit 1) p group by s.id limit p_max loop
    moved := moved + (select count(*) from sluice.cancel(array[v.id], v.reason) c where c.answer = 'cancelled');
  end loop;
  next_ms := (select greatest(0, ceil(extract(epoch from due_at - v_now) * 1000)) from sluice.workflow_timer where due_at > v_now order by due_at limit 1);
  unplaced := exists (select from sluice.workflow_unplaced);
end $$;

-- Fan-outs of handlers whose task failed, was cancelled or is gone: nobody will ask for what they come to.
create function sluice.workflow_orphans(p_max int) returns int language plpgsql set jit = off as $$
declare v_run bigint; v_n int := 0;
begin
  for v_run in select r.id from sluice.workflow_run r where r.parent is not null and r.finished_at is null and not r.stopping
      and (exists (select from sluice.done d where d.id = r.parent and d.state in ('f', 'c')) or not exists (select from sluice.task t where t.id = r.parent)) order by r.id limit p_max loop
    perform sluice.workflow_cancel(v_run, 'the task that made it has ended');
    v_n := v_n + 1;
  end loop;
  -- A parent that was in another's hand when its children ended, as in that of a cancel which rolled back: nobody
  -- will wake it any more. The oldest, and some by lot, so that no look takes long.
  -- guard: parents that nobody woke -> test/postgres/workflow/races.test.ts: "a parent whose cancel rolled back after its last child had ended wakes"
  perform sluice.workflow_wake(array(select distinct p.id from (
      (select x.id, x.runs from sluice.parent x order by x.id limit 500)
      union all (select x.id, x.runs from sluice.parent x where x.id >= (select min(id) + floor(random() * (max(id) - min(id))) from sluice.parent) order by x.id limit 500)) p
    where exists (select from sluice.workflow_run r where r.id = any (p.runs) and r.finished_at is not null)));
  return v_n;
end $$;

-- An event for a run: only inserts, so it may live in a user's transaction. It is kept until a node takes it.
-- False if there is no such run, or it is over.
create function sluice.workflow_send(p_run bigint, p_name text, p_payload json) returns boolean language plpgsql as $$
begin
  perform sluice.check_input(p_payload);
  if not exists (select from sluice.workflow_run where id = p_run and finished_at is null) then return false; end if;
  insert into sluice.workflow_event (run, name, payload) values (p_run, p_name, p_payload);
  insert into sluice.workflow_note (run) values (p_run);
  return true;
end $$;

-- Lanes of this run's windows follow what lane_cap says. Only under the barrier alone, like limits.
create function sluice.workflow_apply(p_run bigint) returns void language plpgsql as $$
begin
  update sluice.lane l set cap = sluice.lane_cap(l.id, -2) where l.id = any (array(select lane from sluice.workflow_node where run = p_run and state = 'r' and lane is not null order by lane));
  insert into sluice.dirty (lane, limit_id) select l.id, -2 from sluice.lane l where l.used < l.cap and l.id = any (array(select lane from sluice.workflow_node where run = p_run and state = 'r' and lane is not null));
  insert into sluice.lowered select -2 where exists (select from sluice.lane l where l.used > l.cap and l.id = any (array(select lane from sluice.workflow_node where run = p_run and lane is not null))) on conflict do nothing;
  perform sluice.ring(array(select distinct stream from sluice.workflow_node where run = p_run and state = 'r' and stream is not null), 50);
end $$;

-- While a run is paused no node of it begins and nothing passes a window; what is ready outside of a window, or
-- runs, goes on. False if there is no such run, or it is over.
create function sluice.workflow_pause(p_run bigint, p_paused boolean) returns boolean language plpgsql as $$
declare v_nodes smallint[]; g record; v record;
begin
  perform sluice.barrier_alone();
  update sluice.workflow_run set paused = p_paused where id = p_run and finished_at is null;
  if not found then return false; end if;
  perform sluice.workflow_apply(p_run);
  if p_paused then return true; end if;
  v_nodes := array(select node from sluice.workflow_node where run = p_run and state = 'h' order by node);
  if v_nodes = '{}' then return true; end if;
  select * into g from sluice.workflow_go(array_fill(p_run, array[cardinality(v_nodes)]), v_nodes, array_fill(0::smallint, array[cardinality(v_nodes)]));
  if g.over_runs is not null then
    select * into v from sluice.workflow_cascade(g.over_runs, g.over_nodes);
    g.made := g.made + v.made; g.streams := g.streams || v.streams;
  end if;
  if g.made > 0 then perform sluice.ring(g.streams, g.made); end if;
  return true;
end $$;

-- Another window for an each, from the moment this returns. Lowered, it lets those that run finish. False if
-- the node has no window, or is over.
create function sluice.workflow_window(p_run bigint, p_node text, p_window int) returns boolean language plpgsql as $$
declare v_node smallint;
begin
  if p_window is null or p_window < 1 then perform sluice.refuse('invalid_option', 'a window is at least 1'); end if;
  perform sluice.barrier_alone();
  perform from sluice.workflow_run where id = p_run for update;
  select n.node into v_node from sluice.workflow_run r join sluice.workflow_node n on n.run = r.id left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  where r.id = p_run and coalesce(s.name, r.name) = p_node and n.lane is not null and n.state in ('u', 'r');
  if not found then return false; end if;
  update sluice.workflow_node set window_size = p_window where run = p_run and node = v_node;
  perform sluice.workflow_apply(p_run);
  return true;
end $$;

-- Runs again from what failed: tasks that failed or were cancelled run again in their old place, of an each only
-- those items; whatever comes after them begins anew when its turn comes, also branches that the failure had
-- started. What succeeded before is kept. Returns how many nodes, 0 if nothing failed.
create function sluice.workflow_retry(p_run bigint) returns int language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare r sluice.workflow_run; v_seeds smallint[]; v_again smallint[]; v_after smallint[]; v_node smallint; v_ids bigint[]; v_go smallint[]; g record; v record;
begin
  perform sluice.barrier_shared();
  select * into r from sluice.workflow_run where id = p_run for update;
  if not found then perform sluice.refuse('run_not_found', 'there is no such run'); end if;
  if r.finished_at is null and r.stopping then perform sluice.refuse('workflow_stopping', 'the run is being cancelled: wait for its end'); end if;
  if r.parent is not null then perform sluice.refuse('invalid_option', 'a fan-out of a handler is retried with its task'); end if;
  v_seeds := array(select n.node from sluice.workflow_node n where n.run = p_run and n.state in ('f', 'c')
    and not exists (select from sluice.workflow_step s cross join lateral unnest(s.deps, s.dep_on, s.dep_recovers) d(node, dep_on, recovers)
      join sluice.workflow_node x on x.run = p_run and x.node = s.node and x.state = 's'
      where s.graph = r.graph and d.node = n.node and d.dep_on = 'f' and d.recovers) order by n.node);
  if v_seeds = '{}' then return 0; end if;
  with recursive after as (
    select x.node from sluice.workflow_step s cross join lateral unnest(s.successors) x(node) where s.graph = r.graph and s.node = any (v_seeds)
    union select x.node from after a join sluice.workflow_step s on s.graph = r.graph and s.node = a.node cross join lateral unnest(s.successors) x(node)
  ) select coalesce(array_agg(node order by node), '{}') into v_after from after;
  -- guard: not beside what still runs -> test/postgres/workflow/operate.test.ts: "beside a branch that the failure started and that still runs is refused"
  if exists (select from sluice.workflow_node n where n.run = p_run and n.node = any (v_after) and n.state in ('r', 'u', 'h')) then
    perform sluice.refuse('workflow_running', 'what followed the failure is not over yet: wait for its end, or cancel the run'); end if;
  -- Seeds that have tasks run these again, unless they come after another that runs again: then from new inputs.
  v_again := array(select n.node from sluice.workflow_node n where n.run = p_run and n.node = any (v_seeds) and n.node <> all (v_after)
    and exists (select from sluice.workflow_task w where w.run = p_run and w.node = n.node) order by n.node);
  v_go := array(select distinct n from unnest(v_seeds || v_after) n where n <> all (v_again) order by n);

  delete from sluice.workflow_halt where run = p_run and node = any (v_seeds || v_after);
  delete from sluice.workflow_timer where run = p_run and node = any (v_go);
  delete from sluice.workflow_unplaced where ctid = any (array(select ctid from sluice.workflow_unplaced where run = p_run and node = any (v_go) for update skip locked));
  if exists (select from sluice.workflow_unplaced where run = p_run and node = any (v_go)) then
    perform sluice.refuse('workflow_stopping', 'tasks of the run are being placed just now: ask again'); end if;
  delete from sluice.workflow_task where run = p_run and node = any (v_go);
  update sluice.workflow_node set state = 'r', failing = false, failed = 0, cancelled = 0, outcome = null, finished_at = null where run = p_run and node = any (v_again);
  update sluice.workflow_node set state = 'p', failing = false, total = 0, succeeded = 0, failed = 0, cancelled = 0, lane = null, task = null, outcome = null, started_at = null, finished_at = null
  where run = p_run and node = any (v_go);
  update sluice.workflow_node n set blocked = (select count(*) from sluice.workflow_step s cross join lateral unnest(s.deps) d(node)
    join sluice.workflow_node x on x.run = p_run and x.node = d.node and x.finished_at is null where s.graph = r.graph and s.node = n.node)
  where n.run = p_run and n.node = any (v_go);
  update sluice.workflow_run set state = 'r', stopping = false, finished_at = null, outcome = null,
    open = (select count(*) from sluice.workflow_node n where n.run = p_run and n.finished_at is null) where id = p_run;
  -- A window that was shut by the failure is open again.
  perform from sluice.lane l where l.id = any (array(select n.lane from sluice.workflow_node n where n.run = p_run and n.node = any (v_again) and n.lane is not null)) order by l.id for update;
  update sluice.lane l set cap = sluice.lane_cap(l.id, -2) where l.id = any (array(select n.lane from sluice.workflow_node n where n.run = p_run and n.node = any (v_again) and n.lane is not null));
  foreach v_node in array v_again loop
    v_ids := array(select w.id from sluice.workflow_task w cross join lateral (select d.id from sluice.done d where d.id = w.id and d.state in ('f', 'c') limit 1) d where w.run = p_run and w.node = v_node order by w.item);
    perform sluice.retry_many(v_ids);
  end loop;
  v_after := array(select node from sluice.workflow_node n where n.run = p_run and n.node = any (v_go) and n.blocked = 0 order by node);
  if v_after <> '{}' then
    select * into g from sluice.workflow_go(array_fill(p_run, array[cardinality(v_after)]), v_after, array_fill(0::smallint, array[cardinality(v_after)]));
    if g.over_runs is not null then
      select * into v from sluice.workflow_cascade(g.over_runs, g.over_nodes);
      g.made := g.made + v.made; g.streams := g.streams || v.streams;
    end if;
    if g.made > 0 then perform sluice.ring(g.streams, g.made); end if;
  end if;
  return cardinality(v_seeds);
end $$;

-- Tasks run again that had fanned out: of what they made, the items that failed or were cancelled run again too,
-- and theirs. What succeeded is kept.
create function sluice.workflow_map_again(p_parents bigint[]) returns void language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_runs bigint[]; v_run bigint;
begin
  perform from sluice.workflow_run r where r.parent = any (p_parents) order by r.id for update;
  v_runs := array(select r.id from sluice.workflow_run r where r.parent = any (p_parents) and r.finished_at is not null and r.state in ('f', 'c') order by r.id);
  delete from sluice.workflow_halt where run = any (v_runs);
  update sluice.workflow_node set state = 'r', failing = false, failed = 0, cancelled = 0, outcome = null, finished_at = null where run = any (v_runs);
  update sluice.workflow_run set state = 'r', stopping = false, finished_at = null, outcome = null, open = 1 where id = any (v_runs);
  foreach v_run in array v_runs loop
    perform sluice.retry_many(array(select w.id from sluice.workflow_task w cross join lateral (select d.id from sluice.done d where d.id = w.id and d.state in ('f', 'c') limit 1) d where w.run = v_run order by w.item));
  end loop;
end $$;

-- A task of a run is tried again alone: only while its node runs, which counts it as not over again. False if
-- it is about to be counted just now: ask again.
create function sluice.workflow_uncount(p_id bigint) returns boolean language plpgsql as $$
declare w sluice.workflow_task; v_state "char";
begin
  select * into w from sluice.workflow_task where id = p_id;
  perform from sluice.workflow_run where id = w.run for update;
  select state into v_state from sluice.done where id = p_id and state in ('f', 'c');
  if not found then return false; end if;
  -- In this order: whoever sees the outcome sees its note too, and none is taken while we hold the run.
  if exists (select from sluice.workflow_note where id = p_id) then return false; end if;
  update sluice.workflow_node set failed = failed - case when v_state = 'f' then 1 else 0 end, cancelled = cancelled - case when v_state = 'c' then 1 else 0 end
  where run = w.run and node = w.node and state = 'r' and not failing;
  if not found then perform sluice.refuse('workflow_over', 'its node is over or being given up: retry the run'); end if;
  return true;
end $$;

create view sluice.workflow_status as
  select r.id, g.name, r.graph, case when r.finished_at is not null or not r.stopping then case r.state when 'r' then case when r.paused then 'paused' else 'running' end when 's' then 'succeeded' when 'f' then 'failed' else 'cancelled' end else 'cancelling' end as state,
    r.open, r.created_at, r.finished_at, r.outcome, r.input, r.parent, r.name as map_name
  from sluice.workflow_run r left join sluice.workflow_graph g on g.id = r.graph;

-- Per node: how many of its tasks there are, and how many have ended how. running counts only where it is asked for.
create view sluice.workflow_progress as
  select n.run, n.node, coalesce(s.name, r.name) as name, n.kind, t.type,
    case n.state when 'p' then 'pending' when 'h' then 'held' when 'u' then 'placing' when 'r' then 'running' when 's' then 'succeeded' when 'f' then 'failed' when 'c' then 'cancelled' else 'skipped' end as state,
    n.total, n.succeeded, n.failed, n.cancelled, n.window_size,
    case when n.state <> 'r' or n.kind not in ('t', 'e') then 0 when n.lane is not null then coalesce((select l.used from sluice.lane l where l.id = n.lane), 0)
      when n.kind = 't' then (select count(*)::int from sluice.run x where x.id = n.task) end as started,
    n.task, n.outcome, n.started_at, n.finished_at
  from sluice.workflow_node n join sluice.workflow_run r on r.id = n.run
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node left join sluice.stream t on t.id = coalesce(n.stream, s.stream);

-- What a run has come to: its result as JSON text, or null. p_max: bytes.
create function sluice.workflow_result(p_run bigint, p_max int) returns text language plpgsql stable as $$
declare r sluice.workflow_run; g sluice.workflow_graph; v record; v_text text := '';
begin
  select * into r from sluice.workflow_run where id = p_run;
  if r.graph is null then return sluice.workflow_each(p_run, 1::smallint, '{}', p_max); end if;
  select * into g from sluice.workflow_graph where id = r.graph;
  if g.parts is not null then return sluice.workflow_render(p_run, g.parts, g.ref_nodes, g.ref_paths, p_max); end if;
  for v in select s.node, s.name from sluice.workflow_step s where s.graph = r.graph and s.successors = '{}' order by s.node loop
    v_text := v_text || case when v_text = '' then '' else ',' end || to_json(v.name)::text || ':' || sluice.workflow_value(p_run, v.node, '{}', p_max);
    perform sluice.workflow_fit(v_text, p_max);
  end loop;
  return '{' || v_text || '}';
end $$;

-- Why a run did not succeed: its nodes that failed or were cancelled, those first that no branch has caught. Of an
-- each the first item that failed.
create function sluice.workflow_failures(p_run bigint, p_max int) returns table (node text, state text, item int, error json, recovered boolean) language sql stable as $$
  select coalesce(s.name, r.name), case n.state when 'f' then 'failed' else 'cancelled' end, i.item, case when n.kind = 'e' then coalesce(i.outcome, n.outcome) else coalesce(n.outcome, i.outcome) end,
    exists (select from sluice.workflow_step k cross join lateral unnest(k.deps, k.dep_on, k.dep_recovers) d(node, dep_on, recovers)
      join sluice.workflow_node x on x.run = r.id and x.node = k.node and x.state = 's'
      where k.graph = r.graph and d.node = n.node and d.dep_on = 'f' and d.recovers) as caught
  from sluice.workflow_run r join sluice.workflow_node n on n.run = r.id and n.state in ('f', 'c')
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  left join lateral (select case when n.kind = 'e' then w.item end as item, d.outcome from sluice.workflow_task w join sluice.done d on d.id = w.id and d.state in ('f', 'c')
    where w.run = r.id and w.node = n.node order by d.state = 'f' desc, w.item limit 1) i on true
  where r.id = p_run order by caught, n.state = 'f' desc, n.finished_at, n.node limit p_max
$$;

-- Runs older than their time, with their tasks: at most p_max tasks and runs at once. A task that still holds its
-- order key is let go from its run and stays. A handler's fan-out is kept while its task may ask for it: also one that failed may be tried again.
create function sluice.workflow_prune(p_succeeded_ms bigint, p_failed_ms bigint, p_cancelled_ms bigint, p_max int) returns int language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_now timestamptz := sluice.clock(); v_runs bigint[]; v_ids bigint[]; v_blocking bigint[]; v_n int; v_gone int;
begin
  v_runs := array(select x.id from (values ('s'::"char", p_succeeded_ms), ('f', p_failed_ms), ('c', p_cancelled_ms)) a(state, ms)
    cross join lateral (select r.id from sluice.workflow_run r where r.state = a.state and r.finished_at < v_now - a.ms * interval '1 millisecond'
      and (r.parent is null or not exists (select from sluice.task t where t.id = r.parent) or exists (select from sluice.done d where d.id = r.parent and d.state = 's'))
      order by r.finished_at limit p_max for update skip locked) x limit p_max);
  if v_runs = '{}' then return 0; end if;
  with gone as (
    delete from sluice.workflow_task where id = any (array(select x.id from unnest(v_runs) r(id) cross join lateral (select w.id from sluice.workflow_task w where w.run = r.id limit p_max) x limit p_max)) returning id
  ) select array_agg(id), count(*) into v_ids, v_n from gone;
  v_blocking := array(select b.id from unnest(v_ids) u(id) cross join lateral (select id from sluice.block k where k.id = u.id limit 1) b);
  delete from sluice.done where id = any (v_ids) and id <> all (v_blocking);
  delete from sluice.task where id = any (v_ids) and id <> all (v_blocking);
  v_runs := array(select r.id from unnest(v_runs) r(id) where not exists (select from sluice.workflow_task w where w.run = r.id));
  delete from sluice.workflow_node where run = any (v_runs);
  delete from sluice.workflow_event where run = any (v_runs);
  delete from sluice.workflow_unplaced where ctid = any (array(select ctid from sluice.workflow_unplaced where run = any (v_runs) for update skip locked));
  delete from sluice.workflow_run where id = any (v_runs);
  get diagnostics v_gone = row_count;
  return v_n + v_gone;
end $$;
