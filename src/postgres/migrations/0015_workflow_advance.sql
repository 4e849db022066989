-- Advance: what ends makes its successors runnable, in the transaction in which it ends. Called by whatever
-- ends tasks, after it has recorded the ends and before it locks lanes. See 0012 for the order of locks.

-- Nodes of which p_hits dependencies have just come to their end: those that were the last begin, or are
-- skipped. p_hits null: the nodes themselves have come to their end, p_good: all of them succeeded, and it is about
-- what depends on them. Returns those that are over already, and what was made.
create function sluice.workflow_go(p_runs bigint[], p_nodes smallint[], p_hits smallint[], p_good boolean default false,
  out over_runs bigint[], out over_nodes smallint[], out streams int[], out made int, out joined boolean)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_runs bigint[]; v_nodes smallint[]; v_tids tid[]; v_left smallint[]; v_fates "char"[]; v_streams int[]; v_graphs int[]; v_bytes int[]; v_now timestamptz := sluice.clock();
  v_types int[]; v_type int; v_in_code int[]; v_terms sluice.workflow_made[]; t record; v_errors json[]; v_state "char"; v_room int := 5000; v_total int;
begin
  made := 0; joined := false;
  -- A dependency fulfils, refuses (because it failed: bad, or because a condition says so: unmet) or is neutral:
  -- skipped by a condition, which counts as fulfilled only beside one that was. That a branch was taken fulfils
  -- nothing: in it a node without what it needs is skipped, as it is outside. Where all that a node needs has
  -- just succeeded together, the last of which is most often the only one, nothing is looked up.
  select array_agg(z.run), array_agg(z.node), array_agg(z.tid), array_agg(z.left_over), array_agg(z.fate), array_agg(z.stream), array_agg(z.graph), array_agg(z.bytes_max),
    array_agg(distinct z.stream) filter (where z.fate = 't')
  into v_runs, v_nodes, v_tids, v_left, v_fates, v_streams, v_graphs, v_bytes, v_types
  from (
    select u.run, u.node, n.tid, n.blocked - u.hits as left_over, s.stream, u.graph, u.bytes_max,
      case when n.blocked > u.hits then 'b' else coalesce(
        case when u.hits < cardinality(s.deps) or u.hits > 0 and not (p_good and 's' = all (s.dep_on)) then (
          select case when bool_or(x.fate = 'bad') then 'k' when bool_or(x.fate = 'unmet') or not bool_or(x.fate = 'met') filter (where x.dep_on in ('s', 'e')) then 'x' end::"char"
          from (select d.dep_on, case d.dep_on when 'e' then 'met'
              when 's' then case when k.state = 's' then 'met' when k.state = 'x' then 'neutral' else 'bad' end
              when 'f' then case when k.state in ('f', 'c') then 'met' when k.state = 'k' then 'bad' else 'unmet' end
              else case when k.state = 's' then case when (k.outcome::text = 'true') = (d.dep_on = 't') then 'met' else 'unmet' end when k.state = 'x' then 'unmet' else 'bad' end
            end as fate
            from unnest(s.deps, s.dep_on) d(node, dep_on) cross join lateral (select state, outcome from sluice.workflow_node k where k.run = u.run and k.node = d.node limit 1) k) x) end,
        case when u.paused then 'h' when n.state = 'h' and s.kind = 't' and exists (select from sluice.workflow_unplaced x where x.run = u.run and x.node = u.node) then 'u' else s.kind end) end::"char" as fate
    from (
      select h.run, h.node, r.graph, r.paused, r.bytes_max, h.hits from unnest(p_runs, p_nodes, p_hits) h(run, node, hits)
      cross join lateral (select graph, paused, bytes_max from sluice.workflow_run where id = h.run limit 1) r where p_hits is not null
      union all
      select h.run, x.node, r.graph, r.paused, r.bytes_max, count(*)::smallint from unnest(p_runs, p_nodes) h(run, node)
      cross join lateral (select graph, paused, bytes_max from sluice.workflow_run where id = h.run limit 1) r
      cross join lateral (select successors from sluice.workflow_step k where k.graph = r.graph and k.node = h.node limit 1) k
      cross join lateral unnest(k.successors) x(node) where p_hits is null group by 1, 2, 3, 4, 5
    ) u
    cross join lateral (select ctid as tid, blocked, state from sluice.workflow_node k where k.run = u.run and k.node = u.node and k.state in ('p', 'h') limit 1) n
    cross join lateral (select kind, stream, deps, dep_on from sluice.workflow_step k where k.graph = u.graph and k.node = u.node limit 1) s
  ) z;
  if v_runs is null then return; end if;

  if v_types is not null then
    -- The terms once per stream: nodes of many runs are mostly of a few types.
    foreach v_type in array v_types loop
      select * into t from sluice.workflow_terms(v_type);
      if t.in_code then v_in_code := v_in_code || v_type; else v_terms := v_terms || row(v_type, t.rank, t.attempts, t.gate)::sluice.workflow_made; streams := streams || v_type; end if;
    end loop;
    if v_in_code is not null then
      v_fates := array(select case when u.fate = 't' and u.stream = any (v_in_code) then 'u' else u.fate end from unnest(v_fates, v_streams) with ordinality u(fate, stream, n) order by u.n);
    end if;
    if v_terms is not null then
      select k.made, k.errors into made, v_errors from sluice.workflow_make_each(v_runs, v_nodes, v_tids, v_graphs, v_bytes, v_streams, v_fates, v_terms) k;
    end if;
  end if;
  -- The life of a chain: every node that could begin has its task, and there is nothing else to do.
  if made = cardinality(v_runs) then return; end if;

  if v_errors is not null then
    v_fates := array(select case when u.error is null then u.fate else 'f' end from unnest(v_fates, v_errors) with ordinality u(fate, error, n) order by u.n);
  end if;
  update sluice.workflow_node n set blocked = u.left_over, outcome = u.error, stream = coalesce(u.stream, n.stream), total = case when u.fate = 'u' then 1 else n.total end,
    state = case when u.fate = 'b' then n.state when u.fate in ('k', 'x', 'h', 'u', 'f') then u.fate else 'r' end::"char",
    started_at = case when u.fate not in ('b', 'k', 'x', 'h', 'f') then v_now else n.started_at end, finished_at = case when u.fate in ('f', 'k', 'x') then v_now end
  from unnest(v_tids, v_left, v_fates, v_streams, v_errors) u(tid, left_over, fate, stream, error) where n.ctid = u.tid and u.fate <> 't';
  if 'u' = any (v_fates) then
    insert into sluice.workflow_unplaced (run, node, stream, in_code) select run, node, stream, true from unnest(v_runs, v_nodes, v_fates, v_streams) u(run, node, fate, stream) where fate = 'u'
    on conflict do nothing;
    -- Counted as made: who is rung to claim them finds that they are to be placed.
    streams := streams || array(select distinct stream from unnest(v_fates, v_streams) u(fate, stream) where fate = 'u');
    made := made + (select count(*) from unnest(v_fates) f where f = 'u');
  end if;

  select array_agg(u.run), array_agg(u.node) into over_runs, over_nodes from unnest(v_runs, v_nodes, v_fates) u(run, node, fate) where u.fate in ('k', 'x', 'f');
  for i in 1..cardinality(v_runs) loop
    continue when v_fates[i] not in ('e', 'w', 's', 'v');
    v_state := case when v_fates[i] = 'e' then sluice.workflow_begin_each(v_runs[i], v_nodes[i], least(v_room, 1000)) else sluice.workflow_begin(v_runs[i], v_nodes[i]) end;
    if v_state in ('s', 'f') then
      over_runs := over_runs || v_runs[i]; over_nodes := over_nodes || v_nodes[i];
    elsif v_state = 'u' then
      streams := streams || v_streams[i]; made := made + 1;
    elsif v_fates[i] = 'e' and v_state = 'r' then
      v_total := (select n.total from sluice.workflow_node n where n.run = v_runs[i] and n.node = v_nodes[i]);
      -- guard: few items at once -> test/postgres/workflow/standing.test.ts: "of many fan-outs that begin at once 5,000 items are made, the rest by transactions of their own"
      joined := true; streams := streams || v_streams[i]; made := made + v_total; v_room := v_room - v_total;
    end if;
  end loop;
end $$;

-- How a run ends whose nodes are all over and of which one failed or was cancelled. A failure that a recovering branch has caught does not count.
create function sluice.workflow_verdict(p_run bigint, p_graph int) returns "char" language plpgsql stable as $$
declare v_state "char";
begin
  select max(n.state::text) into v_state from sluice.workflow_node n where n.run = p_run and n.state in ('f', 'c')
    and not exists (select from sluice.workflow_step s cross join lateral unnest(s.deps, s.dep_on, s.dep_recovers) d(node, dep_on, recovers)
      join sluice.workflow_node x on x.run = p_run and x.node = s.node and x.state = 's'
      where s.graph = p_graph and d.node = n.node and d.dep_on = 'f' and d.recovers);
  return coalesce(v_state, 's');
end $$;

-- Nodes are over, p_good: all of them succeeded; the caller holds the locks of their runs. Whatever follows from it is done, until nothing
-- changes: of a graph of n nodes after at most n rounds, because every round ends at least one.
create function sluice.workflow_cascade(p_runs bigint[], p_nodes smallint[], p_good boolean default false, out streams int[], out made int, out joined boolean)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_runs bigint[] := p_runs; v_nodes smallint[] := p_nodes; v_good boolean := p_good; v_all bigint[]; g record; v_over bigint[]; v_parents bigint[];
begin
  made := 0; joined := false;
  while v_runs is not null loop
    v_all := v_all || v_runs;
    select * into g from sluice.workflow_go(v_runs, v_nodes, null, v_good);
    v_good := false;
    made := made + g.made; joined := joined or g.joined; streams := streams || g.streams;
    v_runs := g.over_runs; v_nodes := g.over_nodes;
  end loop;
  if (select count(distinct run) = count(*) from unnest(v_all) run) then
    with ended as (
      update sluice.workflow_run r set open = r.open - 1, state = case when r.open > 1 then r.state when r.stopping then 'c' when not exists (select from sluice.workflow_node n where n.run = r.id and n.state in ('f', 'c')) then 's' else sluice.workflow_verdict(r.id, r.graph) end,
        finished_at = case when r.open = 1 then sluice.clock() end
      where r.ctid = any (array(select x.tid from unnest(v_all) u(run) cross join lateral (select ctid as tid from sluice.workflow_run where id = u.run limit 1) x)) returning r.id, r.open, r.parent
    )
    select array_agg(id), array_agg(parent) filter (where parent is not null) into v_over, v_parents from ended where open = 0;
  else
    with ended as (
      update sluice.workflow_run r set open = r.open - c.n,
        state = case when r.open > c.n then r.state when r.stopping then 'c' when not exists (select from sluice.workflow_node n where n.run = r.id and n.state in ('f', 'c')) then 's' else sluice.workflow_verdict(r.id, r.graph) end,
        finished_at = case when r.open = c.n then sluice.clock() end
      from (select x.tid, u.n from (select run, count(*)::smallint as n from unnest(v_all) run group by run) u
        cross join lateral (select ctid as tid from sluice.workflow_run where id = u.run limit 1) x) c
      where r.ctid = c.tid returning r.id, r.open, r.parent
    )
    select array_agg(id), array_agg(parent) filter (where parent is not null) into v_over, v_parents from ended where open = 0;
  end if;
  if v_over is not null then perform sluice.workflow_over(v_over, v_parents); end if;
end $$;

-- These nodes begin, for nothing that they wait for is left, and whatever follows from it is done. Others are told what there is.
create function sluice.workflow_set_off(p_runs bigint[], p_nodes smallint[]) returns void language plpgsql as $$
declare g record; v record;
begin
  select * into g from sluice.workflow_go(p_runs, p_nodes, array_fill(0::smallint, array[cardinality(p_runs)]));
  if g.over_runs is not null then
    select * into v from sluice.workflow_cascade(g.over_runs, g.over_nodes);
    g.made := g.made + v.made; g.streams := g.streams || v.streams;
  end if;
  if g.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(g.streams, g.made); end if;
end $$;

-- Runs are over: who waits for one is told, and a task that sleeps until its children are through goes on.
create function sluice.workflow_over(p_runs bigint[], p_parents bigint[]) returns void language plpgsql as $$
begin
  if exists (select from sluice.awaited) then
    -- Somebody waits for a run under the negative of its id: no task has one.
    perform sluice.tell_awaited(array(select distinct a.id from sluice.awaited a where a.id = any (array(select -r from unnest(p_runs) r))));
  end if;
  delete from sluice.workflow_event where run = any (p_runs);
  delete from sluice.workflow_halt where run = any (p_runs);
  if p_parents is not null then perform sluice.workflow_wake(p_parents); end if;
end $$;

-- Why an each failed: how many of its items did, and the message of the first of them, which p_old tells already
-- if it was not the task p_first.
create function sluice.workflow_items_failed(p_failed int, p_total int, p_old json, p_first bigint) returns json language plpgsql stable as $$
declare v_first text := coalesce(p_old -> 'cause' ->> 'message', (select d.outcome ->> 'message' from sluice.done d where d.id = p_first limit 1));
begin
  return json_build_object('name', 'SluiceError', 'code', 'items_failed', 'message', p_failed || ' of ' || p_total || case when p_total = 1 then ' item' else ' items' end || ' failed' || coalesce(': ' || v_first, ''), 'cause', json_build_object('message', v_first));
end $$;

-- Why items of a fail-fast each are cancelled for the sake of another. By this text one knows them from the one that
-- was the cause.
create function sluice.workflow_blame() returns text language sql immutable as $$ select 'another item failed or was cancelled' $$;

-- Items ended so and so often, per node; p_firsts: the first that failed, else that was cancelled. Counts, and returns the nodes that are over
-- with it, whether all of these succeeded, and those that are to be given up because of it. A statement after the
-- one that locked their runs.
create function sluice.workflow_tally(p_runs bigint[], p_nodes smallint[], p_s int[], p_f int[], p_c int[], p_firsts bigint[],
  out over_runs bigint[], out over_nodes smallint[], out good boolean, out failing_runs bigint[], out failing_nodes smallint[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_lanes bigint[];
begin
  with counted as (
    update sluice.workflow_node n set succeeded = n.succeeded + c.s, failed = n.failed + c.f, cancelled = n.cancelled + c.c,
      failing = n.failing or n.policy = 'a' and c.f + c.c > 0,
      state = case when n.total > n.succeeded + n.failed + n.cancelled + c.s + c.f + c.c then n.state
        when n.policy = 'o' and not (select r.stopping from sluice.workflow_run r where r.id = n.run) then 's'
        when n.policy <> 'o' and n.failed + c.f > 0 then 'f' when n.cancelled + c.c > 0 then 'c' else 's' end::"char",
      outcome = case when n.policy in ('a', 'n') then case when n.failed + c.f > 0 then sluice.workflow_items_failed(n.failed + c.f, n.total, n.outcome, c.first)
        when n.cancelled + c.c > 0 then coalesce(n.outcome, (select json_build_object('reason', d.outcome -> 'reason') from sluice.done d where d.id = c.first limit 1)) end end,
      finished_at = case when n.total = n.succeeded + n.failed + n.cancelled + c.s + c.f + c.c then sluice.clock() end
    from (select x.tid, x.failing, u.* from unnest(p_runs, p_nodes, p_s, p_f, p_c, p_firsts) u(run, node, s, f, c, first)
      cross join lateral (select ctid as tid, k.failing from sluice.workflow_node k where k.run = u.run and k.node = u.node and k.state = 'r' limit 1) x) c
    where n.ctid = c.tid returning n.run, n.node, n.state, n.finished_at is not null as over, n.failing and not c.failing as fails, case when n.cancelled > 0 then n.lane end as lane
  )
  select array_agg(run) filter (where over), array_agg(node) filter (where over), bool_and(state = 's') filter (where over),
    array_agg(run) filter (where fails and not over), array_agg(node) filter (where fails and not over), array_agg(lane) filter (where over and lane is not null)
  into over_runs, over_nodes, good, failing_runs, failing_nodes, v_lanes from counted;
  -- Whoever waits at a window and is cancelled frees nothing, so the window's row may be left: somebody looks.
  -- guard: a window goes with its node -> test/postgres/workflow/operate.test.ts: "of a window at which nobody stands any more nothing is left"
  if v_lanes is not null then insert into sluice.dirty (lane, limit_id) select l, -2 from unnest(v_lanes) l; end if;
end $$;

-- Of an each those that are to be cancelled first: what runs, what has been let through and so stands before the first
-- that waits at the window, and p_next that come next. every: that is all there is. Ids ascend with items.
create function sluice.workflow_in_flight(p_run bigint, p_node smallint, p_next int, out ids bigint[], out every boolean)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_item int; v_total int; v_first bigint; v_last bigint;
begin
  select case when n.lane is null then 0 else coalesce(w.item, n.total) end, n.total into v_item, v_total from sluice.workflow_node n
  left join lateral (select k.item from sluice.workflow_task k where k.id = (select x.id from sluice.wait x where x.lane = n.lane order by x.place, x.id limit 1) limit 1) w on true
  where n.run = p_run and n.node = p_node;
  v_first := (select w.id from sluice.workflow_task w where w.run = p_run and w.node = p_node order by w.item limit 1);
  v_last := (select w.id from sluice.workflow_task w where w.run = p_run and w.node = p_node order by w.item desc limit 1);
  every := v_item <= 500 and v_total - v_item <= p_next;
  ids := array(select distinct f.id from (
    (select x.id from (select r.id from sluice.run r where r.id between v_first and v_last order by r.id limit 10000) x
      cross join lateral (select k.run, k.node from sluice.workflow_task k where k.id = x.id limit 1) w where w.run = p_run and w.node = p_node limit 1000)
    union all (select w.id from sluice.workflow_task w where w.run = p_run and w.node = p_node and w.item < v_item order by w.item desc limit 500)
    union all (select w.id from sluice.workflow_task w where w.run = p_run and w.node = p_node and w.item >= v_item order by w.item limit p_next)) f
    left join lateral (select true as ended from sluice.done d where d.id = f.id limit 1) d on true where d.ended is null);
end $$;

-- What a retry of this run, or of this node of it, has not brought back yet stays what it was, and is counted so. The
-- caller holds the run's lock, and looks whether it was the last. Returns the nodes.
create function sluice.workflow_stay(p_run bigint, p_node smallint default null) returns smallint[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_nodes smallint[];
begin
  with gone as (
    delete from sluice.workflow_again a where a.run = p_run and (p_node is null or a.node = p_node) returning *
  ), counted as (
    update sluice.workflow_node n set failed = n.failed + g.failed, cancelled = n.cancelled + g.cancelled, outcome = coalesce(n.outcome, g.outcome)
    from gone g where n.run = g.run and n.node = g.node returning n.node
  )
  select array_agg(node) into v_nodes from counted;
  return v_nodes;
end $$;

-- The first failure of a fail-fast each: those in flight and the next ones are cancelled here, the rest in
-- pieces by the keeper. Returns how many were, null if there is nothing to count.
create function sluice.workflow_give_up(p_run bigint, p_node smallint, p_reason text) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_n int; v_pending bigint[]; v_stayed boolean; v record;
begin
  -- guard: given up with what is not back -> test/postgres/workflow/again.test.ts: "a fail-fast fan-out that fails again before all are back ends with those as they were"
  v_stayed := sluice.workflow_stay(p_run, p_node) is not null;
  select * into v from sluice.workflow_in_flight(p_run, p_node, 500);
  select count(*) filter (where c.answer = 'cancelled'), array_agg(c.id) filter (where c.answer in ('asked', 'moving')) into v_n, v_pending from sluice.cancel(v.ids, p_reason, false) c;
  -- guard: asked until they are over -> test/postgres/workflow/races.test.ts: "an item that was asked to stop while it was handed back is cancelled all the same"
  insert into sluice.workflow_halt (run, node, item, pending, reason)
  select p_run, p_node, case when not v.every then -1 end, coalesce(v_pending, '{}'), p_reason where v_pending is not null or not v.every
  on conflict do nothing;
  return case when v_n > 0 or v_stayed then v_n end;
end $$;

-- These tasks have come to their end; p_states null: they succeeded. Those that belong to no run cost a look.
-- slept: tasks that have just begun to wait for their children.
create function sluice.workflow_ended(p_ids bigint[], p_states "char"[] default null, p_slept bigint[] default null, out streams int[], out made int, out joined boolean)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v record; t record; v_s int[]; v_f int[]; v_c int[]; v_firsts bigint[]; v_runs bigint[]; v_nodes smallint[]; v_over_runs bigint[]; v_over_nodes smallint[]; v_good boolean := true; v_lone boolean; v_locks bigint[]; v_n int;
begin
  made := 0; joined := false;
  select array_agg(x.run), array_agg(x.node), array_agg(x.s), array_agg(x.f), array_agg(x.c), array_agg(x.first), p_states is null and bool_and(x.s = 1)
  into v_runs, v_nodes, v_s, v_f, v_c, v_firsts, v_lone
  from (select w.run, w.node, (count(*) filter (where coalesce(u.state, 's') = 's'))::int as s, (count(*) filter (where u.state = 'f'))::int as f, (count(*) filter (where u.state = 'c'))::int as c, coalesce(min(u.id) filter (where u.state = 'f'), min(u.id) filter (where u.state = 'c')) as first
    from unnest(p_ids, p_states) u(id, state) cross join lateral (select run, node from sluice.workflow_task k where k.id = u.id limit 1) w group by w.run, w.node) x;
  v_locks := v_runs;
  if p_slept is not null then
    -- guard: a parent locks what it waits for -> test/postgres/workflow/races.test.ts: "a parent that goes to sleep beside its last child wakes"
    v_locks := v_locks || array(select r from sluice.parent p, unnest(p.runs) r where p.id = any (p_slept));
  end if;
  if v_locks is null then return; end if;
  -- guard: run lock -> test/postgres/workflow/races.test.ts: "two last completers advance once"
  perform from sluice.workflow_run r where r.id = any (v_locks) order by r.id for no key update;

  if v_lone then
    -- The life of a chain: nodes of one task, which has succeeded. All become the same, so none is looked up twice.
    with counted as (
      update sluice.workflow_node n set succeeded = 1, state = 's', finished_at = sluice.clock() where n.ctid = any (array(
        select x.tid from unnest(v_runs, v_nodes) u(run, node)
        cross join lateral (select k.ctid as tid from sluice.workflow_node k where k.run = u.run and k.node = u.node and k.state = 'r' and k.policy = 't' limit 1) x)) returning n.run, n.node
    ) select array_agg(run), array_agg(node) into v_over_runs, v_over_nodes from counted;
    if cardinality(v_over_runs) = cardinality(v_runs) then v_runs := null;
    elsif v_over_runs is not null then
      select array_agg(u.run), array_agg(u.node) into v_runs, v_nodes from unnest(v_runs, v_nodes) u(run, node)
      where not exists (select from unnest(v_over_runs, v_over_nodes) o(run, node) where o.run = u.run and o.node = u.node);
      v_s := array_fill(1, array[cardinality(v_runs)]); v_f := array_fill(0, array[cardinality(v_runs)]); v_c := v_f;
    end if;
  end if;
  while v_runs is not null loop
    select * into t from sluice.workflow_tally(v_runs, v_nodes, v_s, v_f, v_c, v_firsts);
    v_over_runs := v_over_runs || t.over_runs; v_over_nodes := v_over_nodes || t.over_nodes;
    v_good := v_good and coalesce(t.good, true); v_runs := null; v_firsts := null;
    for i in 1..coalesce(cardinality(t.failing_runs), 0) loop
      v_n := sluice.workflow_give_up(t.failing_runs[i], t.failing_nodes[i], sluice.workflow_blame());
      if v_n is not null then
        v_runs := v_runs || t.failing_runs[i]; v_nodes := case when cardinality(v_runs) = 1 then t.failing_nodes[i:i] else v_nodes || t.failing_nodes[i] end;
        v_c := case when cardinality(v_runs) = 1 then array[v_n] else v_c || v_n end;
      end if;
    end loop;
    v_s := array_fill(0, array[coalesce(cardinality(v_runs), 0)]); v_f := v_s;
  end loop;
  if v_over_runs is not null then
    select * into v from sluice.workflow_cascade(v_over_runs, v_over_nodes, v_good);
    streams := v.streams; made := v.made; joined := v.joined;
  end if;
  if p_slept is not null then
    -- A child that ended before this task went to sleep has not seen it: under the lock of its run we see it.
    -- guard: a parent looks again -> test/postgres/workflow/races.test.ts: "a parent that goes to sleep beside its last child wakes"
    perform sluice.workflow_wake(array(select p.id from sluice.parent p where p.id = any (p_slept)
      and exists (select from sluice.workflow_run r where r.id = any (p.runs) and r.finished_at is not null)));
  end if;
end $$;

-- These tasks failed or were cancelled: whoever keeps runs hears of what they had fanned out. Only inserts.
create function sluice.workflow_bereave(p_ids bigint[]) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  if not exists (select from sluice.workflow_run r where r.parent is not null and r.finished_at is null and not r.stopping) then return; end if;
  insert into sluice.workflow_orphan (run)
  select r.id from unnest(p_ids) u(id) cross join lateral (select k.id, k.finished_at, k.stopping from sluice.workflow_run k where k.parent = u.id offset 0) r where r.finished_at is null and not r.stopping;
end $$;

-- The same for whoever claims nothing himself: others are told what there is.
create function sluice.workflow_ended_elsewhere(p_ids bigint[], p_states "char"[], p_slept bigint[] default null) returns void language plpgsql as $$
declare v record;
begin
  select * into v from sluice.workflow_ended(p_ids, p_states, p_slept);
  if p_states is not null then perform sluice.workflow_bereave(array(select u.id from unnest(p_ids, p_states) u(id, state) where u.state <> 's')); end if;
  if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
end $$;

-- Of these runs, those that the caller holds from here on, and those that are gone. Waits for nobody.
create function sluice.workflow_free(p_runs bigint[]) returns bigint[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_held bigint[];
begin
  -- guard: a note of a run in another's hand -> test/postgres/workflow/standing.test.ts: "a note of a run that another has in hand is left alone, and stops nobody"
  v_held := array(select r.id from sluice.workflow_run r where r.id = any (p_runs) order by r.id for no key update skip locked);
  return v_held || array(select u.run from (select distinct run from unnest(p_runs) run) u
    left join lateral (select true as there from sluice.workflow_run r where r.id = u.run limit 1) k on true where k.there is null);
end $$;

-- Runs other than these that have notes, at most p_max, from any of them on. Looks at one note of each run, so that a
-- run with a million notes costs as much as one with a single note.
create function sluice.workflow_noted(p_except bigint[], p_max int) returns bigint[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_run bigint; v_first bigint; v_last bigint; v_runs bigint[] := '{}'; v_wrapped boolean := false;
begin
  select min(k.run), max(k.run) into v_first, v_last from sluice.workflow_note k;
  -- By lot, so that no run waits behind others for ever.
  v_first := v_first + floor(random() * (v_last - v_first + 1))::bigint;
  v_run := v_first - 1;
  for v_look in 1..2 * p_max loop
    v_run := (select k.run from sluice.workflow_note k where k.run > v_run order by k.run limit 1);
    if v_wrapped then exit when v_run is null or v_run >= v_first; end if;
    if v_run is null then v_wrapped := true; v_run := -1; continue; end if;
    if v_run <> all (p_except) then v_runs := v_runs || v_run; end if;
    exit when cardinality(v_runs) >= p_max;
  end loop;
  return v_runs;
end $$;

-- Takes notes of what happened in users' transactions and acts on them, together with what has just succeeded here
-- (p_ids). Waits only for the runs of the latter, in the order of their ids, and that comes first. The oldest notes come
-- first. Notes of a run that another transaction has in hand are passed over, and others are taken in their place: one
-- run that stands still must stop no other, however many notes it has. Rows of notes and of their runs are taken with
-- SKIP LOCKED, so it makes no difference what else is locked. Returns how many notes.
create function sluice.workflow_notes(p_max int, p_ids bigint[] default null, out taken int, out streams int[], out made int, out joined boolean)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v record; v_tids tid[]; v_note_ids bigint[]; v_of bigint[]; v_heard bigint[]; v_ids bigint[]; v_states "char"[]; v_runs bigint[]; v_more bigint[];
begin
  made := 0; joined := false;
  if p_ids is not null then
    perform from sluice.workflow_run r where r.id = any (array(select k.run from unnest(p_ids) u(id) cross join lateral (select run from sluice.workflow_task w where w.id = u.id limit 1) k))
      order by r.id for no key update;
  end if;
  select array_agg(x.tid), array_agg(x.id), array_agg(x.run) into v_tids, v_note_ids, v_of
  from (select k.ctid as tid, k.id, k.run from sluice.workflow_note k order by k.n limit p_max for update skip locked) x;
  v_runs := sluice.workflow_free(v_of);
  if (select count(*) from unnest(v_of) u(run) where u.run = any (v_runs)) < cardinality(v_of) then
    -- guard: notes of busy runs are passed over -> test/postgres/workflow/standing.test.ts: "100 notes of a run that another has in hand keep no other run's note waiting"
    v_more := sluice.workflow_free(sluice.workflow_noted(array(select distinct u from unnest(v_of) u), p_max));
    select v_tids || array_agg(x.tid), v_note_ids || array_agg(x.id), v_of || array_agg(x.run) into v_tids, v_note_ids, v_of
    from (select y.* from unnest(v_more) u(run) cross join lateral (
        select k.ctid as tid, k.id, k.run from sluice.workflow_note k where k.run = u.run order by k.n limit 10 for update skip locked) y limit p_max) x;
    v_runs := v_runs || v_more;
  end if;
  delete from sluice.workflow_note where ctid = any (array(select u.tid from unnest(v_tids, v_of) u(tid, run) where u.run = any (v_runs)));
  get diagnostics taken = row_count;
  if taken = 0 and p_ids is null then return; end if;

  select array_agg(d.id), array_agg(d.state) into v_ids, v_states from unnest(v_note_ids, v_of) u(id, run)
  cross join lateral (select x.id, x.state from sluice.done x where x.id = u.id limit 1) d where u.run = any (v_runs);
  if v_ids is not null or p_ids is not null then
    select * into v from sluice.workflow_ended(v_ids || p_ids, v_states || array_fill('s'::"char", array[coalesce(cardinality(p_ids), 0)]));
    streams := v.streams; made := v.made; joined := v.joined;
  end if;
  v_heard := array(select distinct u.run from unnest(v_note_ids, v_of) u(id, run) where u.id is null and u.run = any (v_runs));
  if v_heard <> '{}' then
    select * into v from sluice.workflow_heard(v_heard);
    streams := streams || v.streams; made := made + v.made; joined := joined or v.joined;
  end if;
end $$;

-- Events came for these runs, whose locks the caller holds: of the nodes that wait, in their order, each takes the
-- oldest of its name that was sent before its deadline, by the database's clock: so the outcome does not depend on when
-- a keeper comes by. It costs a look per node that waits, however many events nobody waits for.
create function sluice.workflow_heard(p_runs bigint[], out streams int[], out made int, out joined boolean)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare w record; v_payload json; v_over_runs bigint[]; v_over_nodes smallint[]; v record;
begin
  made := 0; joined := false;
  for w in select n.run, n.node, s.event, coalesce(t.due_at, 'infinity') as due_at from sluice.workflow_node n join sluice.workflow_run r on r.id = n.run join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
      left join lateral (select x.due_at from sluice.workflow_timer x where x.run = n.run and x.node = n.node limit 1) t on true
      where n.run = any (p_runs) and n.state = 'r' and n.kind = 'v' order by n.run, n.node loop
    delete from sluice.workflow_event x where x.n = (select e.n from sluice.workflow_event e
      where e.run = w.run and e.name = w.event and e.created_at <= w.due_at order by e.n limit 1) returning x.payload into v_payload;
    continue when not found;
    delete from sluice.workflow_timer t where t.run = w.run and t.node = w.node;
    update sluice.workflow_node set state = 's', outcome = v_payload, finished_at = sluice.clock() where run = w.run and node = w.node;
    v_over_runs := v_over_runs || w.run; v_over_nodes := v_over_nodes || w.node;
  end loop;
  if v_over_runs is null then return; end if;
  select * into v from sluice.workflow_cascade(v_over_runs, v_over_nodes);
  streams := v.streams; made := v.made; joined := v.joined;
end $$;

-- The end of a step's settles: what it settled (all succeeded), and notes. Rings for what this step cannot claim itself.
create function sluice.workflow_step_end(p_ids bigint[], p_streams int[], p_n int, out joined boolean, out unplaced boolean)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v record; v_streams int[]; v_made int := 0;
begin
  joined := false;
  if exists (select from sluice.workflow_note) then
    select * into v from sluice.workflow_notes(100, p_ids);
    joined := v.joined; v_made := v.made; v_streams := v.streams;
  elsif p_ids is not null then
    select * into v from sluice.workflow_ended(p_ids);
    joined := v.joined; v_made := v.made; v_streams := v.streams;
  end if;
  if v_made > 0 and exists (select from sluice.worker where asleep) then
    v_streams := case when v_made >= p_n then v_streams else array(select x from unnest(v_streams) x where x <> all (p_streams)) end;
    if v_streams <> '{}' then perform sluice.ring(v_streams, v_made); end if;
  end if;
  unplaced := exists (select from sluice.workflow_unplaced u where not u.in_code) or exists (select from sluice.workflow_unplaced u where u.in_code and u.stream = any (p_streams));
end $$;
