-- Start, and the placing of tasks that a transaction of its own creates.

-- Starts runs of a graph: only inserts, so it may live in a user's transaction. p_inputs, p_idempotency: texts
-- split by U+001E, as for tasks; '' for a run without a key. Nodes that wait for nothing begin at once.
create function sluice.workflow_start(p_graph int, p_inputs text, p_idempotency text default null, p_idempotency_ms bigint default 86400000, p_bytes_max int default 1048576,
  out ids bigint[], out existed boolean[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_inputs json[] := string_to_array(p_inputs, E'\x1e')::json[]; v_name text; v_fresh bigint[]; v_runs bigint[]; v_nodes smallint[];
begin
  perform sluice.workflow_keep_graph(p_graph);
  perform sluice.workflow_activate();
  -- An older snapshot still shows a graph that was deleted before we asked to keep it: then this fails, as any write would.
  -- guard: a graph that an old snapshot shows -> test/postgres/workflow/standing.test.ts: "a graph that was deleted after the caller's snapshot is not started"
  if current_setting('transaction_isolation') <> 'read committed' then perform from sluice.workflow_graph where id = p_graph for key share; end if;
  select name into v_name from sluice.workflow_graph where id = p_graph;
  if not found then perform sluice.refuse('unknown_workflow', 'no such workflow'); end if;
  ids := array(select nextval('sluice.workflow_id') from generate_series(1, cardinality(v_inputs)));
  v_fresh := ids;
  if p_idempotency is not null then
    select f.ids, array(select not x from unnest(f.fresh) x) into ids, existed
    from sluice.claim_keys_of(E'\x1fworkflow\x1f' || v_name, ids, string_to_array(p_idempotency, E'\x1e'), v_inputs, p_idempotency_ms) f;
    v_fresh := array(select u.id from unnest(ids, existed) u(id, existed) where not u.existed);
  end if;
  if v_fresh = '{}' then return; end if;
  insert into sluice.workflow_run (id, graph, open, input, bytes_max)
  select u.id, p_graph, (select count(*) from sluice.workflow_step where graph = p_graph), u.input, p_bytes_max from unnest(ids, v_inputs, existed) u(id, input, existed)
  -- A key that comes twice in this call is one run, of the first input.
  -- guard: one run per key -> test/postgres/workflow/notes.test.ts: "an idempotency key that comes twice in one call starts one run"
  where u.existed is not true;
  insert into sluice.workflow_node (run, node, kind, policy, state, blocked)
  select r, s.node, s.kind, s.policy, 'p', cardinality(s.deps) from unnest(v_fresh) r cross join (select * from sluice.workflow_step where graph = p_graph order by node) s;
  select array_agg(r), array_agg(s.node) into v_runs, v_nodes from unnest(v_fresh) r cross join sluice.workflow_step s where s.graph = p_graph and s.deps = '{}';
  perform sluice.workflow_set_off(v_runs, v_nodes);
end $$;

-- A placer that stands still inside its transaction, because its process was stopped, would keep what it holds for
-- ever: once it has said that the node is placed, every settle of its run waits for it. The server ends it. Only in
-- transactions of our own: in a user's nobody else sees the run, and the user's settings are not ours.
create function sluice.workflow_impatient() returns void language plpgsql as $$
begin
  -- guard: a placer that stands still -> test/postgres/workflow/place.test.ts: "a placer that stands still is ended by the server, but not in a user's transaction"
  perform set_config('idle_in_transaction_session_timeout', '30s', true);
end $$;

-- The same once runs are locked: nothing but a commit is to come.
create function sluice.workflow_very_impatient() returns void language plpgsql as $$
begin
  if current_setting('idle_in_transaction_session_timeout') = '30s' then perform set_config('idle_in_transaction_session_timeout', '5s', true); end if;
end $$;

-- A row that the caller holds, of a node that waits for nobody: deleted. Under the run's lock, because a resume lets
-- the node wait again and takes the row that it finds for its own. If another has the run, the row is looked at later.
create function sluice.workflow_stale(p_run bigint, p_node smallint) returns void language plpgsql as $$
begin
  perform from sluice.workflow_run r where r.id = p_run for no key update skip locked;
  -- guard: stale under the lock -> test/postgres/workflow/place.test.ts: "a resume beside one who clears away what was left behind loses nothing"
  if not found and exists (select from sluice.workflow_run r where r.id = p_run) then
    update sluice.workflow_unplaced u set due_at = sluice.clock() + interval '1 second' where u.run = p_run and u.node = p_node;
    return;
  end if;
  delete from sluice.workflow_unplaced u where u.run = p_run and u.node = p_node
    and not exists (select from sluice.workflow_node n where n.run = p_run and n.node = p_node and n.state = 'u');
end $$;

-- How long a node is put off that was tried so many times before.
create function sluice.workflow_backoff(p_tries int) returns interval language sql immutable as
$$ select least(60000, 100 * 4 ^ p_tries) * interval '1 millisecond' $$;

-- The user's code is about to run for nodes that the caller holds in another transaction: a schema or a key function
-- that kills the process is counted by this. Not waited for on disk: a server that dies may forget it.
create function sluice.workflow_try(p_runs bigint[], p_nodes smallint[], p_worker bigint) returns bigint
language plpgsql as $$
declare v_id bigint;
begin
  perform set_config('synchronous_commit', 'off', true);
  -- Of nodes that nobody took again, because their runs are gone.
  delete from sluice.workflow_trying where id = any (array(
    select t.id from sluice.workflow_trying t where t.begun_at < sluice.clock() - interval '1 day' for update skip locked));
  insert into sluice.workflow_trying (worker, runs, nodes) values (p_worker, p_runs, p_nodes) returning id into v_id;
  return v_id;
end $$;

-- It came back. In the transaction that places the nodes; or before that rolls back, in one of its own.
create function sluice.workflow_tried(p_id bigint) returns boolean language plpgsql as $$
begin
  delete from sluice.workflow_trying
  where id = any (array(select t.id from sluice.workflow_trying t where t.id = p_id for update skip locked));
  return found;
end $$;

-- Whether a process died while it ran the user's code for this node, whose row the caller holds. Then all nodes that it
-- had in hand are counted as tried and put off: from there they are tried one by one, so that the innocent ones are
-- placed and the guilty one does not stand in front of them. The caller commits that and looks again.
create function sluice.workflow_outlived(p_run bigint, p_node smallint) returns boolean language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare t record; v_any boolean := false;
begin
  for t in select x.* from sluice.workflow_trying x where exists (
      select from unnest(x.runs, x.nodes) k(run, node) where k.run = p_run and k.node = p_node) for update skip locked loop
    update sluice.workflow_unplaced u set tries = u.tries + 1, due_at = sluice.clock() + sluice.workflow_backoff(u.tries),
      died = case when t.worker is null then u.died else u.died || t.worker end
    where u.ctid = any (array(select x.ctid from unnest(t.runs, t.nodes) k(run, node)
      join sluice.workflow_unplaced x on x.run = k.run and x.node = k.node for update of x skip locked));
    delete from sluice.workflow_trying x where x.id = t.id;
    v_any := true;
  end loop;
  return v_any;
end $$;

-- Of the nodes in these streams whose tasks only code can place, one that nobody has in hand. The caller
-- keeps its row locked until all is placed (workflow_place, then workflow_placed) or rolls back. Stream by stream in
-- any order, so that none waits behind a long line of another; within one the oldest, now and then one that was put
-- off, so that none waits for ever. again: there was one that nobody wants any more. Whoever inserts it anew waits
-- for our delete, so the caller ends his transaction before he looks again.
create function sluice.workflow_take(p_streams int[], out run bigint, out node smallint, out stream int, out total int, out priority int, out attempts int, out again boolean) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_stream int; v_since timestamptz; v_tries int; v_now timestamptz := sluice.clock();
begin
  again := false;
  perform sluice.workflow_impatient();
  for v_stream, v_since in select s, x.since from unnest(p_streams) s cross join lateral (values (timestamptz '-infinity'), (timestamptz 'epoch')) x(since) order by random() loop
    select u.run, u.node, u.stream, u.tries into run, node, stream, v_tries from sluice.workflow_unplaced u where u.in_code and u.stream = v_stream and u.due_at between v_since and v_now
    order by u.due_at, u.run, u.node limit 1 for update skip locked;
    exit when found;
  end loop;
  if run is null then return; end if;
  select n.total, -s.rank, s.attempts into total, priority, attempts
  from sluice.workflow_run r join sluice.workflow_node n on n.run = r.id join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  where r.id = workflow_take.run and n.node = workflow_take.node and n.state = 'u';
  if not found then
    -- Cancelled or paused while another had it in hand, who found that out and rolled back.
    perform sluice.workflow_stale(run, node);
  -- guard: the code of a node that kills its process is counted -> test/postgres/workflow/place.test.ts: "a node whose code kills the process is counted each time, and fails after ten"
  elsif exists (select from sluice.workflow_trying) and sluice.workflow_outlived(run, node) then
    null;
  elsif v_tries >= 10 then
    perform sluice.workflow_misplaced(run, node, sluice.workflow_error('poisoned', format('its tasks could not be created in %s tries: '
      'in the last one the process died while it checked an input or decided a key of this node', v_tries)));
  else
    return;
  end if;
  run := null; again := true;
end $$;

-- The same for many nodes of one task each that were never tried, with their inputs: at most p_max, and until their
-- inputs are p_bytes long. One that cannot be rendered, or with which a process died, is left out. A row without a run:
-- there are others, such as fan-outs and those that were put off, for workflow_take.
create function sluice.workflow_take_small(p_streams int[], p_max int, p_bytes int) returns table (run bigint, node smallint, stream int, priority int, attempts int, input text) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_stream int; v_runs bigint[]; v_nodes smallint[]; v_seen int := 0; v_taken int := 0; v_bytes int := 0; v_now timestamptz := sluice.clock(); v_died text[];
begin
  perform sluice.workflow_impatient();
  for v_stream in select s from unnest(p_streams) s order by random() loop
    select array_agg(x.run), array_agg(x.node) into v_runs, v_nodes from (
      select u.run, u.node from sluice.workflow_unplaced u where u.in_code and u.stream = v_stream and u.due_at = '-infinity'
      order by u.run, u.node limit p_max - v_seen for update skip locked) x;
    -- Read after the rows were locked: what is still being tried then is by nobody who lives.
    v_died := array(select k.run || ':' || k.node from sluice.workflow_trying t cross join lateral unnest(t.runs, t.nodes) k(run, node)
      where t.runs && v_runs);
    for i in 1..coalesce(cardinality(v_runs), 0) loop
      v_seen := v_seen + 1;
      continue when v_bytes >= p_bytes;
      -- guard: a batch leaves out what a process died with -> test/postgres/workflow/place.test.ts: "after a crash the nodes of a batch are tried one by one, and the innocent ones are placed"
      continue when v_runs[i] || ':' || v_nodes[i] = any (v_died);
      begin
        select n.run, n.node, n.stream, -s.rank, s.attempts, sluice.workflow_render(n.run, s.parts, s.ref_nodes, s.ref_paths, r.bytes_max) into run, node, stream, priority, attempts, input
        from sluice.workflow_node n join sluice.workflow_run r on r.id = n.run join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
        where n.run = v_runs[i] and n.node = v_nodes[i] and n.state = 'u' and n.kind = 't';
        continue when not found;
      exception when others then continue;
      end;
      v_taken := v_taken + 1; v_bytes := v_bytes + octet_length(input);
      return next;
    end loop;
    exit when v_seen >= p_max;
  end loop;
  if v_taken < v_seen or exists (select from unnest(p_streams) s cross join lateral (
      select from sluice.workflow_unplaced u where u.in_code and u.stream = s and u.due_at between 'epoch' and v_now limit 1) x) then
    run := null;
    return next;
  end if;
end $$;

-- Places nodes that were taken so, all of one type and of equal terms, and lets them run: the n-th input is that of the
-- n-th node. p_lock: the runs of all that were taken, with the first of several calls in one transaction, so that they
-- are locked in the order of their ids. Refuses all if one is not wanted any more.
create function sluice.workflow_place_small(p_lock bigint[], p_runs bigint[], p_nodes smallint[], p_stream int, p_priority int, p_attempts int, p_inputs text,
  p_limits int[] default null, p_keys text default null, p_orders text default null, p_order_blocks boolean default false) returns void language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_inputs json[] := string_to_array(p_inputs, E'\x1e')::json[]; v_ids bigint[]; v_tids tid[];
begin
  -- guard: small ones in the order of their runs -> test/postgres/workflow/place.test.ts: "many at once lock their runs in the order of their ids"
  perform from sluice.workflow_run r where r.id = any (p_lock) order by r.id for no key update;
  v_tids := array(select x.tid from unnest(p_runs, p_nodes) with ordinality u(run, node, i) cross join lateral (
    select n.ctid as tid from sluice.workflow_node n where n.run = u.run and n.node = u.node and n.state = 'u' and n.kind = 't' and n.stream = p_stream limit 1) x order by u.i);
  -- guard: small ones only while they are wanted -> test/postgres/workflow/place.test.ts: "of many that are placed at once none is, if one is not wanted any more"
  if cardinality(v_tids) <> cardinality(v_inputs) then perform sluice.refuse('workflow_over', 'one of these nodes is not to be placed any more'); end if;
  v_ids := array(select nextval('sluice.task_id') from generate_series(1, cardinality(v_inputs)));
  perform sluice.insert_placed(p_stream, (-p_priority)::smallint, p_attempts::smallint, v_ids, v_inputs, p_limits, p_keys, p_orders, p_order_blocks, null, null, null);
  insert into sluice.workflow_task (id, run, node, item) select u.id, u.run, u.node, 0 from unnest(v_ids, p_runs, p_nodes) u(id, run, node);
  update sluice.workflow_node n set state = 'r', task = u.id from unnest(v_ids, v_tids) u(id, tid) where n.ctid = u.tid;
  delete from sluice.workflow_unplaced where ctid = any (array(select x.tid from unnest(p_runs, p_nodes) u(run, node) cross join lateral (
    select k.ctid as tid from sluice.workflow_unplaced k where k.run = u.run and k.node = u.node limit 1) x));
  perform sluice.workflow_very_impatient();
  if exists (select from sluice.worker where asleep) then perform sluice.ring(array[p_stream], cardinality(v_ids)); end if;
end $$;

-- The nodes of one run that only code can place, for the client that has just started it.
create function sluice.workflow_roots(p_run bigint) returns table (run bigint, node smallint, stream int, total int, priority int, attempts int) language sql stable as $$
  select u.run, u.node, u.stream, n.total, -s.rank, s.attempts::int
  from sluice.workflow_unplaced u join sluice.workflow_run r on r.id = u.run
  join sluice.workflow_node n on n.run = u.run and n.node = u.node join sluice.workflow_step s on s.graph = r.graph and s.node = u.node
  where u.run = p_run and u.in_code and n.state = 'u' order by u.node
$$;

-- Takes one of them in hand, as workflow_take does. False if another has it, or has placed it, or nobody wants it
-- any more. p_ours: in a transaction of our own.
create function sluice.workflow_hold(p_run bigint, p_node smallint, p_ours boolean) returns boolean language plpgsql as $$
begin
  if p_ours then perform sluice.workflow_impatient(); end if;
  perform from sluice.workflow_unplaced u where u.run = p_run and u.node = p_node for update skip locked;
  return found and exists (select from sluice.workflow_node n where n.run = p_run and n.node = p_node and n.state = 'u');
end $$;

-- Rendered inputs of a node from an item on, at most p_max, as a JSON list.
create function sluice.workflow_inputs(p_run bigint, p_node smallint, p_from int, p_max int) returns text language plpgsql stable as $$
declare v record; s record;
begin
  select k.*, r.bytes_max into s from sluice.workflow_run r join sluice.workflow_step k on k.graph = r.graph and k.node = p_node where r.id = p_run;
  if s.kind = 't' then return '[' || sluice.workflow_render(p_run, s.parts, s.ref_nodes, s.ref_paths, s.bytes_max) || ']'; end if;
  select * into v from sluice.workflow_items(p_run, p_node);
  return (select '[' || coalesce(string_agg(sluice.workflow_item_input(e.value, e.n - 1, v.parts, v.kinds, v.paths, v.bytes_max), ',' order by e.n), '') || ']'
    from json_array_elements(v.items) with ordinality e(value, n) where e.n > p_from and e.n <= p_from + p_max);
end $$;

-- A task that waits for its items keeps its order key. Items with the same key would wait for it, and it for them, for ever:
-- they are refused. So are those of items' own fan-outs, whoever above them holds the key.
create function sluice.workflow_check_orders(p_run bigint, p_from int, p_orders text[]) returns void language plpgsql as $$
declare v_above bigint := (select r.parent from sluice.workflow_run r where r.id = p_run); v_key text;
begin
  while v_above is not null loop
    select t.lane_keys[1] into v_key from sluice.task t where t.id = v_above and t.lanes[1] >> 60 = 1;
    -- guard: no item waits for its own parent -> test/postgres/workflow/place.test.ts: "items with an order key that a task above them holds are refused"
    if v_key = any (p_orders) then
      perform sluice.refuse('invalid_key', format('task %s waits for these items and holds the order key "%s" of one of them: they would wait for each other for ever (item %s)',
        v_above, split_part(v_key, E'\x1f', -1), p_from + array_position(p_orders, v_key) - 1));
    end if;
    v_above := (select r.parent from sluice.workflow_task w join sluice.workflow_run r on r.id = w.run where w.id = v_above);
  end loop;
end $$;

-- Inserts tasks for the items of a node from p_from on, with what code has decided of them. The lists as in
-- enqueue_many. The node is not touched: that comes last, so that nobody waits for the run meanwhile.
create function sluice.workflow_place(p_run bigint, p_node smallint, p_from int, p_stream int, p_priority int, p_attempts int, p_inputs text,
  p_limits int[] default null, p_keys text default null, p_orders text default null, p_order_blocks boolean default false) returns void language plpgsql as $$
declare v_inputs json[] := string_to_array(p_inputs, E'\x1e')::json[]; v sluice.workflow_node; v_ids bigint[];
begin
  select * into v from sluice.workflow_node where run = p_run and node = p_node;
  -- guard: only what is to be placed -> test/postgres/workflow/place.test.ts: "a node that is not to be placed, or is of another type, gets no tasks"
  if v.state is distinct from 'u' then perform sluice.refuse('workflow_over', 'the tasks of this node are not to be placed, or not any more'); end if;
  if p_stream is distinct from v.stream then perform sluice.refuse('invalid_option', 'the tasks of this node are of another type'); end if;
  if p_orders is not null then perform sluice.workflow_check_orders(p_run, p_from, string_to_array(p_orders, E'\x1e')); end if;
  v_ids := array(select nextval('sluice.task_id') from generate_series(1, cardinality(v_inputs)));
  perform sluice.insert_placed(p_stream, (-p_priority)::smallint, p_attempts::smallint, v_ids, v_inputs, p_limits, p_keys, p_orders, p_order_blocks, null, null, null, v.lane, p_run || ':' || p_node);
  insert into sluice.workflow_task (id, run, node, item) select u.id, p_run, p_node, p_from + u.n - 1 from unnest(v_ids) with ordinality u(id, n);
end $$;

-- All tasks of a node are placed: it runs. False if it does not wait for that any more, because its run was
-- cancelled or paused meanwhile; then the caller rolls back what it placed. The run's row is locked here, last, so
-- that nobody waits for it longer than for a commit.
create function sluice.workflow_placed(p_run bigint, p_node smallint) returns boolean language plpgsql as $$
declare v sluice.workflow_node; v_placed int; v_outer bigint; v_paused boolean := false;
begin
  -- A handler's fan-out is paused from its beginning if the run of its task is. A pause of that run locks its row FOR
  -- UPDATE, and what its tasks made is looked up after the commit: so one of the two sees the other. Its id is lower than
  -- ours. FOR KEY SHARE, which stops a pause or a resume and nothing else: however many tasks fan out, no settle waits.
  v_outer := (select r.outer_run from sluice.workflow_run r where r.id = p_run);
  if v_outer is not null then
    -- guard: no settle waits for a map in the making -> test/postgres/workflow/inner.test.ts: "a settle of a run does not wait for a map that one of its tasks is making"
    -- guard: a map is paused with the run of its task -> test/postgres/workflow/races.test.ts: "a map that is made beside a pause of its task's run is paused, whoever comes first"
    select r.paused into v_paused from sluice.workflow_run r where r.id = v_outer for key share;
  end if;
  perform from sluice.workflow_run where id = p_run for no key update;
  select * into v from sluice.workflow_node where run = p_run and node = p_node;
  -- guard: placed only while it is wanted -> test/postgres/workflow/place.test.ts: "a run that is cancelled while its tasks are placed gets none"
  if v.state <> 'u' then return false; end if;
  v_placed := (select count(*) from sluice.workflow_task where run = p_run and node = p_node);
  if v_placed <> v.total then perform sluice.refuse('invalid_option', format('%s of %s tasks were placed', v_placed, v.total)); end if;
  update sluice.workflow_node set state = 'r', task = case when v.kind = 't' then (select id from sluice.workflow_task where run = p_run and node = p_node) end where run = p_run and node = p_node;
  delete from sluice.workflow_unplaced where run = p_run and node = p_node;
  if v_paused then update sluice.workflow_run set paused = true where id = p_run; end if;
  perform sluice.workflow_very_impatient();
  if exists (select from sluice.worker where asleep) then perform sluice.ring(array[v.stream], v.total); end if;
  return true;
end $$;

-- The tasks of a node cannot be placed, because its inputs are not what the task takes: it fails. Whoever has it in
-- hand waits for the run's row, so we do not wait for his: what he leaves behind goes with the next take.
create function sluice.workflow_misplaced(p_run bigint, p_node smallint, p_error json) returns boolean language plpgsql as $$
declare v record;
begin
  perform from sluice.workflow_run where id = p_run for no key update;
  update sluice.workflow_node set state = 'f', outcome = p_error, total = 0, finished_at = sluice.clock() where run = p_run and node = p_node and state = 'u';
  if not found then return false; end if;
  -- guard: nobody waits for a placer -> test/postgres/workflow/place.test.ts: "a node fails while another has it in hand, who waits for nobody but its run"
  delete from sluice.workflow_unplaced where ctid = any (array(select ctid from sluice.workflow_unplaced where run = p_run and node = p_node for update skip locked));
  select * into v from sluice.workflow_cascade(array[p_run], array[p_node]);
  if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
  return true;
end $$;

-- The tasks of a node could not be placed for a reason that may pass. It is tried again later, each time after
-- longer, and others have their turn; the tenth time it fails. False if another has it in hand, or has placed it. Our
-- row first and then the run, as every placer does. The row is only locked until then: a resume, which holds the run and
-- finds the row, would wait for one that is changed.
create function sluice.workflow_put_off(p_run bigint, p_node smallint, p_code text, p_message text) returns boolean language plpgsql as $$
declare v_tries int;
begin
  select u.tries + 1 into v_tries from sluice.workflow_unplaced u where u.run = p_run and u.node = p_node for update skip locked;
  if not found then return false; end if;
  -- guard: ten tries -> test/postgres/workflow/place.test.ts: "a node that cannot be placed for a reason that may pass is put off, then fails"
  if v_tries >= 10 then
    return sluice.workflow_misplaced(p_run, p_node, sluice.workflow_error(p_code, format('its tasks could not be created in %s tries, the last time because: %s', v_tries, p_message)));
  end if;
  update sluice.workflow_unplaced u set tries = v_tries, due_at = sluice.clock() + sluice.workflow_backoff(u.tries) where u.run = p_run and u.node = p_node;
  return true;
end $$;

-- Creates the tasks of one each that needs no code but has many items. False if there is none to be done.
create function sluice.workflow_place_many() returns boolean language plpgsql as $$
declare u sluice.workflow_unplaced; n sluice.workflow_node; s record; t record; v record; v_wanted boolean; v_state text; v_message text;
begin
  select * into u from sluice.workflow_unplaced x where not x.in_code and x.due_at <= sluice.clock() order by x.due_at, x.run, x.node limit 1 for update skip locked;
  if not found then return false; end if;
  select * into n from sluice.workflow_node x where x.run = u.run and x.node = u.node;
  if n.state is distinct from 'u' then
    perform sluice.workflow_stale(u.run, u.node);
    return true;
  end if;
  select * into t from sluice.workflow_terms(u.stream);
  if t.in_code then
    -- Since then the type has got an order or keys.
    update sluice.workflow_unplaced x set in_code = true where x.run = u.run and x.node = u.node;
    return true;
  end if;
  select k.* into s from sluice.workflow_run r join sluice.workflow_step k on k.graph = r.graph and k.node = u.node where r.id = u.run;
  begin
    select * into v from sluice.workflow_items(u.run, u.node);
    perform sluice.workflow_fan(u.run, u.node, u.stream, n.lane, coalesce(s.rank, t.rank), coalesce(s.attempts, t.attempts), t.gate, v.items, v.parts, v.kinds, v.paths, v.bytes_max);
    v_wanted := sluice.workflow_placed(u.run, u.node);
    -- What was placed is rolled back; the row goes with the next take.
    if not v_wanted then raise exception using errcode = 'SLUIC', message = 'not wanted'; end if;
  exception when others or query_canceled then
    get stacked diagnostics v_state = returned_sqlstate, v_message = message_text;
  end;
  if v_wanted is not null then return true; end if;
  if v_state = 'SLUIC' or v_state like '22%' or v_state like '54%' then
    perform sluice.workflow_misplaced(u.run, u.node, sluice.workflow_caught(v_state, v_message));
  else
    perform sluice.workflow_put_off(u.run, u.node, 'database_busy', v_message);
  end if;
  return true;
end $$;
