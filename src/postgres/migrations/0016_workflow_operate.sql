-- Operate: cancel, halt, timers, events, pause, windows, retry, look, prune.

-- The barrier shared and then the rows of these runs, by id. Whoever holds one may stand still, and whoever changes a limit
-- waits for the barrier alone: so both are let go again after a moment, which is what the rollback of a subtransaction
-- does, and asked for again, for ten seconds in all. False if there is no such run.
create function sluice.workflow_shared(p_runs bigint[]) returns boolean language plpgsql set lock_timeout = '300ms' as $$
begin
  for v_try in 1..25 loop
    begin
      perform sluice.barrier_shared();
      -- guard: the shared barrier is let go -> test/postgres/workflow/again.test.ts: "while another holds its run, a retry stops no change of a limit"
      perform from sluice.workflow_run where id = any (p_runs) order by id for update;
      return found;
    exception when lock_not_available then
      null;
    end;
    -- By lot, so that it never keeps step with whoever queues for the barrier a moment at a time.
    perform pg_sleep(0.05 + random() * 0.1);
  end loop;
  perform sluice.refuse('database_busy', 'another transaction has held this run for seconds: ask again');
end $$;

-- 'cancelled': it is over. 'asked': what runs has been asked to stop, what waits is being cancelled. 'over',
-- 'unknown'. No node begins and nothing passes a window from the moment this returns; what has passed, or has none, and is
-- more than a piece, may begin until workflow_further has been there. The same holds for what its tasks have fanned out
-- that do not run; what of that was in another's hand is shut by workflow_cancel_maps.
create function sluice.workflow_cancel(p_run bigint, p_reason text default null) returns text language plpgsql
set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare r sluice.workflow_run; v_nodes smallint[]; v_stayed smallint[]; v_none int[]; t record;
begin
  perform sluice.workflow_shared(array[p_run]);
  select * into r from sluice.workflow_run where id = p_run;
  if not found or r.pruning then return 'unknown'; end if;
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
  -- guard: cancelled with what is not back -> test/postgres/workflow/again.test.ts: "a cancel before all are back ends the run with those as they were"
  v_stayed := sluice.workflow_stay(p_run);
  if v_stayed is not null then
    v_none := array_fill(0, array[cardinality(v_stayed)]);
    select * into t from sluice.workflow_tally(array_fill(p_run, array[cardinality(v_stayed)]), v_stayed, v_none, v_none, v_none, null);
    v_nodes := v_nodes || t.over_nodes;
  end if;
  -- Those in flight first.
  insert into sluice.workflow_halt as h (run, node, pending, reason)
  select p_run, n.node, coalesce(f.ids, '{}'), p_reason from sluice.workflow_node n left join lateral sluice.workflow_in_flight(p_run, n.node, 0) f on n.kind = 'e' where n.run = p_run and n.state = 'r'
  on conflict (run, node) do nothing;
  if v_nodes is not null then
    perform sluice.workflow_cascade(array_fill(p_run, array[cardinality(v_nodes)]), v_nodes);
  end if;
  perform sluice.workflow_halt_run(p_run, 1000);
  return case when (select finished_at from sluice.workflow_run where id = p_run) is null then 'asked' else 'cancelled' end;
end $$;

-- Cancels tasks of nodes that are to halt, at most p_max new ones; what is over is passed over, twenty times as many at
-- most. The caller holds the run's lock. Returns how many were looked at for the first time or came to their end by it, at least p_max while
-- there are more to look at.
create function sluice.workflow_halt_run(p_run bigint, p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare h record; v_ids bigint[]; v_last int; v_gone bigint[]; v_all bigint[]; v_pending bigint[]; v_n int := 0; v_new int := 0; v_more boolean := false;
begin
  for h in select x.*, n.total from sluice.workflow_halt x join sluice.workflow_node n on n.run = x.run and n.node = x.node where x.run = p_run order by x.node for update of x skip locked loop
    v_ids := '{}'; v_last := h.item;
    if h.item is not null and v_new < p_max then
      select coalesce(array_agg(w.id), '{}'), max(w.item) into v_ids, v_last from (
        select k.id, k.item from sluice.workflow_task k left join lateral (select true as ended from sluice.done d where d.id = k.id limit 1) d on true
        where k.run = p_run and k.node = h.node and k.item > h.item and k.item <= h.item + 20 * p_max and d.ended is null order by k.item limit p_max - v_new) w;
      if cardinality(v_ids) < p_max - v_new then
        v_last := case when h.total > h.item + 20 * p_max + 1 then h.item + 20 * p_max end;
        v_new := v_new + least(h.total / 20, p_max);
      end if;
    end if;
    -- Each once: of two answers for one both would be counted.
    -- guard: each is cancelled once -> test/postgres/workflow/races.test.ts: "an item of many that was asked to stop while it was handed back is counted once"
    select array_agg(c.id) filter (where c.answer = 'cancelled'), coalesce(array_agg(c.id) filter (where c.answer in ('asked', 'moving')), '{}') into v_gone, v_pending
    from sluice.cancel(array(select distinct i from unnest(h.pending || v_ids) i), h.reason, false) c;
    v_n := v_n + cardinality(v_ids) + case when cardinality(v_ids) = 0 then coalesce(cardinality(v_gone), 0) else 0 end;
    v_new := least(v_new + cardinality(v_ids), p_max);
    v_more := v_more or v_last is not null;
    if v_last is null and v_pending = '{}' then
      delete from sluice.workflow_halt where run = p_run and node = h.node;
    else
      update sluice.workflow_halt set item = v_last, pending = v_pending where run = p_run and node = h.node;
    end if;
    if v_gone is not null then
      perform sluice.workflow_ended_elsewhere(v_gone, array_fill('c'::"char", array[cardinality(v_gone)]));
      v_all := v_all || v_gone;
    end if;
  end loop;
  -- guard: what cancelled tasks made is shut -> test/postgres/workflow/inner.test.ts: "shuts what its sleeping tasks have fanned out before it returns, and what the items of that have"
  if v_all is not null then v_n := v_n + sluice.workflow_shut(v_all, p_max - v_new); end if;
  return case when v_more then greatest(v_n, p_max) else v_n end;
end $$;

-- What tasks have fanned out that are cancelled, and what the items of that have, as far as there is something to do: it
-- is not being cancelled yet, or there are items nobody has looked at. By id, at most p_max. Of these tasks; or of all
-- tasks of a run that is being cancelled, but for those that run: they hear of it, and what they have made goes with
-- their end. The same holds for items. One that was cancelled leads to what its items have, also when it is over. Looks
-- by id and not by joins, which may walk all that ever ended.
create function sluice.workflow_inner(p_run bigint, p_tasks bigint[], p_max int) returns bigint[]
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  if not exists (select from sluice.workflow_run r where r.parent is not null) then return '{}'; end if;
  return array(with recursive made as (
    (select r.id, r.stopping, r.finished_at from unnest(p_tasks) u(id) cross join lateral (select k.id, k.stopping, k.finished_at from sluice.workflow_run k where k.parent = u.id offset 0) r
      where (r.finished_at is null or r.stopping) and (select d.state from sluice.done d where d.id = u.id limit 1) in ('f', 'c')
    union all select k.id, k.stopping, k.finished_at from sluice.workflow_run k where k.outer_run = p_run and (k.finished_at is null or k.stopping)
      and (select true from sluice.run x where x.id = k.parent limit 1) is null and (select d.state from sluice.done d where d.id = k.parent limit 1) is distinct from 's')
    union select k.id, k.stopping, k.finished_at from made m cross join lateral (select x.* from sluice.workflow_run x where x.outer_run = m.id and (x.finished_at is null or x.stopping)) k
      where (select true from sluice.run x where x.id = k.parent limit 1) is null and (select d.state from sluice.done d where d.id = k.parent limit 1) is distinct from 's'
  ) select m.id from made m where m.finished_at is null and (not m.stopping or (select true from sluice.workflow_halt h where h.run = m.id and h.item is not null limit 1)) order by m.id limit p_max);
end $$;

-- Of these fan-outs, whose locks the caller holds, those are to be cancelled whose task was, or will be with its run: so
-- one that was retried meanwhile keeps what it made. From here on nothing passes their windows. Outermost first.
create function sluice.workflow_stop_maps(p_maps bigint[]) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_reason text := 'the task that made it has ended'; v_runs bigint[]; v_run bigint; t record;
begin
  loop
    -- guard: a map goes only with its task -> test/postgres/workflow/races.test.ts: "a task that is retried before what it made is cancelled keeps it"
    with doomed as (
      update sluice.workflow_run r set stopping = true, outcome = json_build_object('reason', v_reason) where r.id = any (p_maps) and r.finished_at is null and not r.stopping
        and (coalesce((select d.state from sluice.done d where d.id = r.parent limit 1) in ('f', 'c'),
          (select o.stopping from sluice.workflow_run o where o.id = r.outer_run limit 1) and (select true from sluice.run x where x.id = r.parent limit 1) is null))
      returning r.id
    ) select array_agg(id) into v_runs from doomed;
    exit when v_runs is null;
    update sluice.workflow_node set failing = true where run = any (v_runs) and state = 'r';
    -- guard: a map is stopped with what is not back -> test/postgres/workflow/inner.test.ts: "takes with it what a retry has not brought back yet of what its tasks have fanned out"
    for v_run in select distinct a.run from sluice.workflow_again a where a.run = any (v_runs) loop
      perform sluice.workflow_stay(v_run);
      select * into t from sluice.workflow_tally(array[v_run], array[1::smallint], array[0], array[0], array[0], null);
      if t.over_runs is not null then perform sluice.workflow_cascade(t.over_runs, t.over_nodes); end if;
    end loop;
    insert into sluice.workflow_halt (run, node, reason) select n.run, n.node, v_reason from sluice.workflow_node n where n.run = any (v_runs) and n.state = 'r' on conflict do nothing;
  end loop;
end $$;

-- These tasks were cancelled in this transaction: what they had fanned out is to be cancelled with them, at most p_max of
-- its items here. What is in another's hand is not waited for, so that it makes no difference what else the caller has
-- locked: it is noted (workflow_bereave), for workflow_cancel_maps or a keeper. Returns how many items.
create function sluice.workflow_shut(p_tasks bigint[], p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_maps bigint[] := sluice.workflow_inner(null, p_tasks, 1000); v_run bigint; v_n int := 0;
begin
  if v_maps = '{}' then return 0; end if;
  v_maps := array(select r.id from sluice.workflow_run r where r.id = any (v_maps) and r.finished_at is null order by r.id for update skip locked);
  perform sluice.workflow_stop_maps(v_maps);
  foreach v_run in array v_maps loop
    exit when v_n >= p_max;
    v_n := v_n + sluice.workflow_halt_run(v_run, p_max - v_n);
  end loop;
  return v_n;
end $$;

-- What tasks have fanned out that were cancelled (p_tasks), or whose run was (p_run), is cancelled too, and what its items
-- have: a piece of at most p_max items. For whoever does not want to wait for a keeper, in a transaction of its own. The
-- runs are locked by id, as everywhere. True: there is more to do, call again.
create function sluice.workflow_cancel_maps(p_run bigint, p_tasks bigint[], p_max int) returns boolean language plpgsql
set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_maps bigint[]; v_run bigint; v_left int := p_max;
begin
  if p_run is not null and not exists (select from sluice.workflow_run r where r.id = p_run and r.stopping) then return false; end if;
  v_maps := sluice.workflow_inner(p_run, p_tasks, 200);
  if v_maps = '{}' then return false; end if;
  -- guard: who has a map in hand is waited for -> test/postgres/workflow/races.test.ts: "a map that is in another's hand when its task's run is cancelled is shut all the same"
  perform sluice.workflow_shared(v_maps);
  perform sluice.workflow_stop_maps(v_maps);
  foreach v_run in array v_maps loop
    exit when v_left <= 0;
    v_left := v_left - sluice.workflow_halt_run(v_run, v_left);
  end loop;
  return sluice.workflow_inner(p_run, p_tasks, 1) <> '{}';
end $$;

-- The next piece of what a cancel or a retry of this run has begun, for whoever does not want to wait for a keeper.
-- 'more': call again. 'waits': for what runs, or for somebody who resumes it. 'over'.
create function sluice.workflow_further(p_run bigint, p_max int) returns text language plpgsql
set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_paused boolean;
begin
  perform sluice.workflow_shared(array[p_run]);
  select paused into v_paused from sluice.workflow_run where id = p_run and finished_at is null;
  if not found then return 'over'; end if;
  perform sluice.workflow_halt_run(p_run, p_max);
  if not v_paused then perform sluice.workflow_again_run(p_run, p_max); end if;
  if exists (select from sluice.workflow_run where id = p_run and finished_at is not null) then return 'over'; end if;
  return case when exists (select from sluice.workflow_halt where run = p_run and item is not null)
    or not v_paused and exists (select from sluice.workflow_again where run = p_run and item is not null and cardinality(pending) < p_max) then 'more' else 'waits' end;
end $$;

-- What must happen without anyone asking: notes, timers, halts, tasks that are to run again. Any process may
-- call it at any time; each takes what no other has in hand. next_ms: until the next timer, null if there is none.
-- p_after: the run up to which a walk over those of which tasks are to run again has come, 0 to begin; after: where to go on.
create function sluice.workflow_keep(p_max int, p_after bigint default 0, out moved int, out next_ms bigint, out unplaced boolean, out after bigint)
language plpgsql set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_now timestamptz := sluice.clock(); v record; v_runs bigint[]; v_nodes smallint[]; v_run bigint; v_left int := p_max; v_from bigint; v_look bigint[];
begin
  moved := 0; unplaced := false; after := 0;
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
  for v_run in select h.run from sluice.workflow_halt h group by h.run order by bool_and(h.item is null), random() limit 32 loop
    perform from sluice.workflow_run where id = v_run for update skip locked;
    if found then v_left := v_left - sluice.workflow_halt_run(v_run, v_left); end if;
    exit when v_left <= 0;
  end loop;
  moved := moved + p_max - v_left;
  -- Asked to stop at the moment in which they went to sleep: nobody has told them.
  for v in select s.id, min(s.reason) as reason from sluice.stop s cross join lateral (select p.id from sluice.parent p where p.id = s.id limit 1) p group by s.id limit p_max loop
    moved := moved + (select count(*) from sluice.cancel(array[v.id], v.reason) c where c.answer = 'cancelled');
  end loop;
  -- Last: it locks lanes, of all these runs by id, and nothing is waited for after that. A walk: those that cannot come
  -- back yet, however many, stand in nobody's way.
  v_from := case when exists (select from sluice.workflow_again a where a.run > p_after) then p_after else 0 end;
  v_look := array(select a.run from sluice.workflow_again a where a.run > v_from order by a.run, a.node limit 100);
  if v_look <> '{}' then
    v_runs := array(select r.id from sluice.workflow_run r where r.id = any (v_look) and not r.paused order by r.id for update skip locked);
    -- guard: lanes of several runs by id -> test/postgres/workflow/again.test.ts: "a keeper that brings back several runs locks their windows in the order of all"
    perform from sluice.lane l where l.id = any (array(select n.lane from sluice.workflow_again x join sluice.workflow_node n on n.run = x.run and n.node = x.node
      where x.run = any (v_runs) and x.item = -1 and n.lane is not null)) order by l.id for update;
    after := coalesce(v_look[100], 0); v_left := p_max;
    foreach v_run in array v_runs loop
      v_left := v_left - sluice.workflow_again_run(v_run, v_left);
      if v_left <= 0 then after := v_run; exit; end if;
    end loop;
    moved := moved + p_max - v_left;
    -- Some came back, and there are runs that nobody has looked at in this round: at once.
    if v_left < p_max and (after > 0 or v_from > 0) then moved := greatest(moved, p_max); end if;
  end if;
  next_ms := (select greatest(0, ceil(extract(epoch from due_at - v_now) * 1000)) from sluice.workflow_timer where due_at > v_now order by due_at limit 1);
  unplaced := exists (select from sluice.workflow_unplaced);
end $$;

-- Fan-outs of handlers whose task failed, was cancelled or is gone: nobody will ask for what they come to. Cancels one
-- of them, of at most p_max that were noted, so that no other run is locked meanwhile; cancelled: 0 if there was none.
-- p_after, p_after_parent: up to which fan-out, and which parent, a walk over them has come, 0 to begin; after,
-- after_parent: where to go on. So each is looked at once in a round, however their ids lie.
create function sluice.workflow_orphans(p_max int, p_after bigint default 0, p_after_parent bigint default 0, out cancelled int, out after bigint, out after_parent bigint)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v record; v_run sluice.workflow_run; v_look bigint[];
begin
  cancelled := 0; after := p_after;
  perform sluice.barrier_shared();
  -- A handler that went on although its task had been taken from it may have made one after the task's end: nobody has
  -- noted that. Some at a time, so that no look takes long.
  if not exists (select from sluice.workflow_orphan) then
    v_look := array(select x.id from sluice.workflow_run x where x.parent is not null and x.finished_at is null and not x.stopping and x.id > p_after order by x.id limit 200);
    after := coalesce(v_look[200], 0);
    insert into sluice.workflow_orphan (run) select r.id from (select x.id, x.parent from sluice.workflow_run x where x.id = any (v_look)) r
      left join lateral (select k.id from sluice.task k where k.id = r.parent limit 1) t on true left join lateral (select k.state from sluice.done k where k.id = t.id limit 1) d on true
      where t.id is null or d.state in ('f', 'c');
  end if;
  for v in select o.ctid as tid, o.run from sluice.workflow_orphan o order by o.run limit p_max for update skip locked loop
    -- guard: what is left of a task is locked before the task is looked at -> test/postgres/workflow/races.test.ts: "what a task had fanned out goes on if the task is retried before anybody cancels it"
    select * into v_run from sluice.workflow_run where id = v.run for update skip locked;
    -- In another's hand: next time.
    continue when not found and exists (select from sluice.workflow_run where id = v.run);
    delete from sluice.workflow_orphan where ctid = v.tid;
    continue when v_run.id is null or v_run.finished_at is not null or v_run.stopping;
    -- It may have been retried since.
    continue when not exists (select from sluice.done d where d.id = v_run.parent and d.state in ('f', 'c')) and exists (select from sluice.task t where t.id = v_run.parent);
    perform sluice.workflow_cancel(v_run.id, 'the task that made it has ended');
    cancelled := 1;
    exit;
  end loop;
  -- A parent that was in another's hand when its children ended, as in that of a cancel which rolled back: nobody
  -- will wake it any more. Some at a time, so that no look takes long.
  -- guard: parents that nobody woke -> test/postgres/workflow/races.test.ts: "a parent whose cancel rolled back after its last child had ended wakes"
  perform sluice.workflow_wake(array(select p.id from (select x.id, x.runs from sluice.parent x where x.id > p_after_parent order by x.id limit 1000) p
    where exists (select from sluice.workflow_run r where r.id = any (p.runs) and r.finished_at is not null)));
  after_parent := coalesce((select x.id from sluice.parent x where x.id > p_after_parent order by x.id offset 999 limit 1), 0);
end $$;

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
  return true;
end $$;

-- Lanes of these runs' windows follow what lane_cap says. Only under the barrier alone, like limits.
create function sluice.workflow_apply(p_runs bigint[]) returns void language plpgsql as $$
begin
  update sluice.lane l set cap = sluice.lane_cap(l.id, -2) where l.id = any (array(select lane from sluice.workflow_node where run = any (p_runs) and state = 'r' and lane is not null order by lane));
  insert into sluice.dirty (lane, limit_id) select l.id, -2 from sluice.lane l where l.used < l.cap and l.id = any (array(select lane from sluice.workflow_node where run = any (p_runs) and state = 'r' and lane is not null));
  insert into sluice.lowered select -2 where exists (select from sluice.lane l where l.used > l.cap and l.id = any (array(select lane from sluice.workflow_node where run = any (p_runs) and lane is not null))) on conflict do nothing;
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
declare v_nodes smallint[]; g record; v record;
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
  select * into g from sluice.workflow_go(array_fill(p_run, array[cardinality(v_nodes)]), v_nodes, array_fill(0::smallint, array[cardinality(v_nodes)]));
  if g.over_runs is not null then
    select * into v from sluice.workflow_cascade(g.over_runs, g.over_nodes);
    g.made := g.made + v.made; g.streams := g.streams || v.streams;
  end if;
  if g.made > 0 then perform sluice.ring(g.streams, g.made); end if;
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

-- Runs again from what failed: tasks that failed or were cancelled run again in their old place, of an each only
-- those items; whatever comes after them begins anew when its turn comes, also branches that the failure had
-- started. What succeeded before is kept. Tasks come back in pieces: the first here, the others by workflow_further or
-- a keeper. Returns how many nodes, 0 if nothing failed.
create function sluice.workflow_retry(p_run bigint) returns int language plpgsql
set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare r sluice.workflow_run; v_seeds smallint[]; v_again smallint[]; v_after smallint[]; v_go smallint[]; g record; v record;
begin
  perform sluice.workflow_shared(array[p_run]);
  select * into r from sluice.workflow_run where id = p_run;
  -- guard: what is being pruned is gone -> test/postgres/workflow/keep.test.ts: "a run of which a part is pruned is gone for whoever asks"
  if not found or r.pruning then perform sluice.refuse('run_not_found', 'there is no such run'); end if;
  if r.finished_at is null and r.stopping then perform sluice.refuse('workflow_stopping', 'the run is being cancelled: wait for its end'); end if;
  -- guard: a paused run starts nothing -> test/postgres/workflow/operate.test.ts: "of a paused run is refused until it is resumed; one that ended while it was paused goes on"
  if r.finished_at is null and r.paused then perform sluice.refuse('workflow_paused', 'the run is paused: resume it first'); end if;
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
  insert into sluice.workflow_again (run, node, failed, cancelled, outcome) select p_run, n.node, n.failed, n.cancelled, n.outcome from sluice.workflow_node n where n.run = p_run and n.node = any (v_again);
  update sluice.workflow_node set state = 'r', failing = false, failed = 0, cancelled = 0, outcome = null, finished_at = null where run = p_run and node = any (v_again);
  update sluice.workflow_node set state = 'p', failing = false, total = 0, succeeded = 0, failed = 0, cancelled = 0, lane = null, task = null, outcome = null, started_at = null, finished_at = null
  where run = p_run and node = any (v_go);
  -- Their window_size stays: what somebody has set for this run holds for it, also when the node begins anew.
  update sluice.workflow_node n set blocked = (select count(*) from sluice.workflow_step s cross join lateral unnest(s.deps) d(node)
    join sluice.workflow_node x on x.run = p_run and x.node = d.node and x.finished_at is null where s.graph = r.graph and s.node = n.node)
  where n.run = p_run and n.node = any (v_go);
  update sluice.workflow_run set state = 'r', stopping = false, paused = false, finished_at = null, outcome = null,
    open = (select count(*) from sluice.workflow_node n where n.run = p_run and n.finished_at is null) where id = p_run;
  -- guard: a retry resumes what was fanned out -> test/postgres/workflow/inner.test.ts: "what a paused run's task had fanned out goes on when the run is cancelled and retried"
  if r.paused then perform sluice.workflow_lead(array[p_run], p_run); end if;
  v_after := array(select node from sluice.workflow_node n where n.run = p_run and n.node = any (v_go) and n.blocked = 0 order by node);
  if v_after <> '{}' then
    select * into g from sluice.workflow_go(array_fill(p_run, array[cardinality(v_after)]), v_after, array_fill(0::smallint, array[cardinality(v_after)]));
    if g.over_runs is not null then
      select * into v from sluice.workflow_cascade(g.over_runs, g.over_nodes);
      g.made := g.made + v.made; g.streams := g.streams || v.streams;
    end if;
    if g.made > 0 then perform sluice.ring(g.streams, g.made); end if;
  end if;
  perform sluice.workflow_again_run(p_run, 1000);
  return cardinality(v_seeds);
end $$;

-- Brings back tasks of nodes that run again, at most p_max of them, in the order of their items, and looks at no more
-- than twenty times as many. The caller holds the run's lock. Of what these tasks had fanned out nothing is waited for,
-- so that it makes no difference what else the caller has locked: what is in another's hand, or being cancelled, keeps
-- its task back until the next call. Returns how many came back, at least p_max while the next call would find more.
create function sluice.workflow_again_run(p_run bigint, p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare a record; v_lanes bigint[]; v_left int; v_want int; v_new bigint[]; v_last int; v_ids bigint[]; v_mine bigint[]; v_kept bigint[]; v_f int; v_c int; v_n int := 0; v_more boolean := false;
begin
  -- A window that was shut when its node ended is open again. Lanes by id, once.
  v_lanes := array(select n.lane from sluice.workflow_again x join sluice.workflow_node n on n.run = x.run and n.node = x.node where x.run = p_run and x.item = -1 and n.lane is not null);
  if v_lanes <> '{}' then
    perform from sluice.lane l where l.id = any (v_lanes) order by l.id for update;
    update sluice.lane l set cap = sluice.lane_cap(l.id, -2) where l.id = any (v_lanes);
  end if;
  for a in select x.*, n.total from sluice.workflow_again x join sluice.workflow_node n on n.run = x.run and n.node = x.node where x.run = p_run order by x.node loop
    if v_n >= p_max then v_more := true; exit; end if;
    v_new := '{}'; v_last := a.item; v_left := a.failed + a.cancelled - cardinality(a.pending); v_want := least(v_left, p_max - v_n);
    if a.item is not null and cardinality(a.pending) < p_max then
      select coalesce(array_agg(w.id), '{}'), max(w.item) into v_new, v_last from (
        select k.id, k.item from sluice.workflow_task k cross join lateral (select from sluice.done d where d.id = k.id and d.state in ('f', 'c') limit 1) d
        where k.run = p_run and k.node = a.node and k.item > a.item and k.item <= a.item + 20 * p_max order by k.item limit v_want) w;
      v_last := case when cardinality(v_new) = v_left then null when cardinality(v_new) = v_want then v_last when a.total > a.item + 20 * p_max + 1 then a.item + 20 * p_max end;
    end if;
    v_ids := a.pending || v_new;
    -- guard: what tasks made is not waited for -> test/postgres/workflow/races.test.ts: "a retry waits for nobody who holds what a task of the run had fanned out"
    v_mine := array(select r.id from sluice.workflow_run r where r.parent = any (v_ids) for update skip locked);
    -- guard: a task comes back after what it made has stopped -> test/postgres/workflow/again.test.ts: "a task comes back when the cancel of what it had fanned out is over, and not before"
    v_kept := array(select distinct r.parent from sluice.workflow_run r where r.parent = any (v_ids) and (r.stopping and r.finished_at is null or r.id <> all (v_mine)));
    if v_kept <> '{}' then v_ids := array(select i from unnest(v_ids) i where i <> all (v_kept)); end if;
    select count(*) filter (where d.state = 'f'), count(*) filter (where d.state = 'c') into v_f, v_c
    from unnest(v_ids) u(id) cross join lateral (select x.state from sluice.done x where x.id = u.id limit 1) d;
    v_n := v_n + sluice.retry_many(v_ids);
    if v_last is null and v_kept = '{}' then
      delete from sluice.workflow_again where run = p_run and node = a.node;
    else
      update sluice.workflow_again x set item = v_last, pending = v_kept, failed = x.failed - v_f, cancelled = x.cancelled - v_c where x.run = p_run and x.node = a.node;
      -- Behind p_max that are kept back nobody is looked for: whoever called again at once would only ask for these again.
      v_more := v_more or v_last is not null and cardinality(v_kept) < p_max;
    end if;
  end loop;
  return case when v_more then greatest(v_n, p_max) else v_n end;
end $$;

-- Tasks run again that had fanned out: of what they made, the items that failed or were cancelled are to run again too,
-- and what those made. What succeeded is kept. The caller holds the locks of these runs.
create function sluice.workflow_map_again(p_parents bigint[]) returns void language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_runs bigint[]; v_good bigint[];
begin
  v_runs := array(select r.id from (select k.id, k.state, k.finished_at from sluice.workflow_run k where k.parent = any (p_parents) offset 0) r where r.finished_at is not null and r.state in ('f', 'c'));
  -- One that came to its end by itself while it was being cancelled has succeeded, and nothing of it is left to run.
  v_good := array(select n.run from sluice.workflow_node n where n.run = any (v_runs) and n.state = 's');
  update sluice.workflow_run r set state = 's', stopping = false, outcome = null where r.id = any (v_good);
  v_runs := array(select r from unnest(v_runs) r where r <> all (v_good));
  insert into sluice.workflow_again (run, node, failed, cancelled, outcome)
  select n.run, n.node, n.failed, n.cancelled, n.outcome from sluice.workflow_node n where n.run = any (v_runs);
  update sluice.workflow_run r set state = 'r', stopping = false, paused = false, finished_at = null, outcome = null, open = 1 where r.id = any (v_runs);
  update sluice.workflow_node n set state = 'r', failing = false, failed = 0, cancelled = 0, outcome = null, finished_at = null where n.run = any (v_runs);
end $$;

-- A task of a run is tried again alone: only while its node runs, which counts it as not over again. False if
-- it is about to be counted just now: ask again. Null: a retry of its run is bringing it back.
create function sluice.workflow_uncount(p_id bigint) returns boolean language plpgsql as $$
declare w sluice.workflow_task; v_state "char"; v_paused boolean;
begin
  select * into w from sluice.workflow_task where id = p_id;
  -- Also one that is over: a retry of it may be under way.
  select paused and finished_at is null into v_paused from sluice.workflow_run where id = w.run for update;
  select state into v_state from sluice.done where id = p_id and state in ('f', 'c');
  if not found then return false; end if;
  -- guard: not counted twice -> test/postgres/workflow/again.test.ts: "a task that a retry of its run is bringing back is not brought back twice"
  if exists (select from sluice.workflow_again a where a.run = w.run and a.node = w.node and (w.item > a.item or p_id = any (a.pending))) then return null; end if;
  if v_paused then perform sluice.refuse('workflow_paused', 'its run is paused: resume it first'); end if;
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
  from sluice.workflow_run r left join sluice.workflow_graph g on g.id = r.graph where not r.pruning;

-- Per node: how many of its tasks there are, and how many have ended how. error: why it failed or was cancelled, without
-- its stack; of an each what the node tells, so that no item is looked at. due_at: until when it sleeps, or waits for its
-- event. unserved: its tasks are there or to be placed, and no live worker has their type.
create view sluice.workflow_progress as
  select n.run, n.node, coalesce(s.name, r.name) as name, n.kind, t.type,
    case n.state when 'p' then 'pending' when 'h' then 'held' when 'u' then 'placing' when 'r' then 'running' when 's' then 'succeeded' when 'f' then 'failed' when 'c' then 'cancelled' else 'skipped' end as state,
    n.total, n.succeeded, n.failed, n.cancelled, n.window_size,
    case when n.state <> 'r' or n.kind not in ('t', 'e') then 0 when n.lane is not null then coalesce((select l.used from sluice.lane l where l.id = n.lane), 0)
      when n.kind = 't' then (select count(*)::int from sluice.run x where x.id = n.task) end as started,
    n.task, n.outcome, n.started_at, n.finished_at,
    case when n.state in ('f', 'c') then json_build_object('name', e.kept ->> 'name', 'message', e.kept ->> 'message', 'code', e.kept ->> 'code', 'reason', e.kept ->> 'reason') end as error,
    s.event, case when n.state = 'r' and n.kind in ('s', 'v') then (select x.due_at from sluice.workflow_timer x where x.run = n.run and x.node = n.node) end as due_at,
    n.state in ('r', 'u') and n.kind in ('t', 'e') and not exists (select from sluice.worker w where w.expires_at > sluice.clock() and t.id = any (w.streams)) as unserved
  from sluice.workflow_node n join sluice.workflow_run r on r.id = n.run and not r.pruning
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node left join sluice.stream t on t.id = coalesce(n.stream, s.stream)
  left join lateral (select coalesce(n.outcome, (select d.outcome from sluice.done d where d.id = n.task limit 1), case when n.state = 'c' then r.outcome end) as kept where n.state in ('f', 'c')) e on true;

-- What a run has come to: its result as JSON text, or null. p_max: bytes.
create function sluice.workflow_result(p_run bigint, p_max int) returns text language plpgsql stable as $$
declare r sluice.workflow_run; g sluice.workflow_graph; v record; v_text text := '';
begin
  select * into r from sluice.workflow_run where id = p_run;
  if r.pruning then perform sluice.refuse('run_not_found', 'there is no such run'); end if;
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
-- each the first item that failed, else the first that was cancelled, and not for the sake of another.
create function sluice.workflow_failures(p_run bigint, p_max int) returns table (node text, state text, item int, error json, recovered boolean) language sql stable as $$
  select coalesce(s.name, r.name), case n.state when 'f' then 'failed' else 'cancelled' end, i.item, case when n.kind = 'e' then coalesce(i.outcome, n.outcome) else coalesce(n.outcome, i.outcome) end,
    exists (select from sluice.workflow_step k cross join lateral unnest(k.deps, k.dep_on, k.dep_recovers) d(node, dep_on, recovers)
      join sluice.workflow_node x on x.run = r.id and x.node = k.node and x.state = 's'
      where k.graph = r.graph and d.node = n.node and d.dep_on = 'f' and d.recovers) as caught
  from sluice.workflow_run r join sluice.workflow_node n on n.run = r.id and n.state in ('f', 'c')
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node
  left join lateral (select case when n.kind = 'e' then x.item end as item, x.outcome from (
      -- Each of them walks the items in their order, and ends at the first.
      (select 1 as n, w.item, d.outcome from sluice.workflow_task w cross join lateral (select outcome from sluice.done where id = w.id and state = 'f' limit 1) d
        where n.failed > 0 and w.run = r.id and w.node = n.node order by w.item limit 1)
      union all (select 2, w.item, d.outcome from sluice.workflow_task w cross join lateral (select outcome from sluice.done where id = w.id and state = 'c' limit 1) d
        where n.failed = 0 and w.run = r.id and w.node = n.node and d.outcome ->> 'reason' is distinct from sluice.workflow_blame() order by w.item limit 1)
      union all (select 3, w.item, d.outcome from sluice.workflow_task w cross join lateral (select outcome from sluice.done where id = w.id and state = 'c' limit 1) d
        where n.failed = 0 and w.run = r.id and w.node = n.node order by w.item limit 1)) x order by x.n limit 1) i on true
  where r.id = p_run order by caught, n.state = 'f' desc, n.finished_at, n.node limit p_max
$$;

-- A page of the items of an each by their index, after p_after: all, or those in one state, at most p_max. It looks at
-- no more than it returns, or where a state is asked for at p_look. Of those that failed or were cancelled also what is
-- kept of why. next: after which index to go on; null: there is nothing more.
create function sluice.workflow_item_page(p_run bigint, p_node text, p_state text, p_after int, p_max int, p_look int, out items json, out next int)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_node smallint; v_kind "char"; v_look int := case when p_state is null then p_max else p_look end; v_n int; v_last int;
begin
  select n.node, n.kind into v_node, v_kind from sluice.workflow_run r join sluice.workflow_node n on n.run = r.id
  left join sluice.workflow_step s on s.graph = r.graph and s.node = n.node where r.id = p_run and not r.pruning and coalesce(s.name, r.name) = p_node;
  if not found then
    if not exists (select from sluice.workflow_run where id = p_run and not pruning) then perform sluice.refuse('run_not_found', 'there is no such run'); end if;
    perform sluice.refuse('unknown_node', format('run %s has no node %s', p_run, to_json(p_node)));
  end if;
  if v_kind <> 'e' then perform sluice.refuse('invalid_option', format('node %s is no each: it has no items', to_json(p_node))); end if;
  select count(*), max(x.item), coalesce(json_agg(json_build_object('index', x.item, 'task', x.id::text, 'state', x.state, 'error', case when x.state in ('failed', 'cancelled') then
    json_build_object('name', x.outcome ->> 'name', 'message', x.outcome ->> 'message', 'code', x.outcome ->> 'code', 'reason', x.outcome ->> 'reason') end) order by x.item), '[]')
  into v_n, v_last, items from (
    select w.item, w.id, coalesce(d.state, t.state) as state, d.outcome
    from (select k.item, k.id from sluice.workflow_task k where k.run = p_run and k.node = v_node and k.item > p_after order by k.item limit v_look) w
    left join lateral (select case y.state when 's' then 'succeeded' when 'f' then 'failed' else 'cancelled' end as state, y.outcome from sluice.done y where y.id = w.id limit 1) d on true
    -- What is in none of these waits, wherever that is. Not by task_state: that may walk all who stand at the window.
    left join lateral (select case when exists (select from sluice.run y where y.id = w.id) then 'running' when exists (select from sluice.scheduled y where y.id = w.id) then 'scheduled'
      when exists (select from sluice.suspect y where y.id = w.id) or exists (select from sluice.ready y where y.stream = k.stream and y.rank = k.rank and y.id = k.id) then 'ready' else 'waiting' end as state
      from sluice.task k where d.state is null and k.id = w.id limit 1) t on true
    where p_state is null or coalesce(d.state, t.state) = p_state order by w.item limit p_max) x;
  if v_n < p_max then
    v_last := (select k.item from sluice.workflow_task k where k.run = p_run and k.node = v_node and k.item > p_after order by k.item offset v_look - 1 limit 1);
  end if;
  next := (select v_last where exists (select from sluice.workflow_task k where k.run = p_run and k.node = v_node and k.item > v_last));
end $$;

-- Runs older than their time, with their tasks: at most p_max tasks and runs at once. One of which only a part is gone
-- is marked, and gone for whoever asks. A task that still holds its order key is let go from its run and stays. A
-- handler's fan-out is kept while its task may ask for it: also one that failed may be tried again. So old ones may stay
-- for long, and are looked at in parts: the oldest, and some by a walk, which has come up to p_after, 0 to begin; after:
-- where to go on, 0: it has come to the end.
create function sluice.workflow_prune(p_succeeded_ms bigint, p_failed_ms bigint, p_cancelled_ms bigint, p_max int, p_after bigint default 0, out pruned int, out after bigint) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_now timestamptz := sluice.clock(); v_runs bigint[]; v_look bigint[]; v_maps bigint[]; v_cut bigint[]; v_ids bigint[]; v_blocking bigint[]; v_n int; v_gone int;
begin
  pruned := 0;
  v_runs := array(select x.id from (values ('s'::"char", p_succeeded_ms), ('f', p_failed_ms), ('c', p_cancelled_ms)) a(state, ms)
    cross join lateral (select r.id from sluice.workflow_run r where r.parent is null and r.state = a.state and r.finished_at < v_now - a.ms * interval '1 millisecond'
      order by r.finished_at limit p_max for update skip locked) x limit p_max);
  v_look := array(select x.id from sluice.workflow_run x where x.parent is not null and x.finished_at is not null and x.id > p_after order by x.id limit 500);
  after := coalesce(v_look[500], 0);
  v_look := v_look || array(select x.id from sluice.workflow_run x where x.parent is not null and x.finished_at is not null and x.id <= p_after order by x.id limit 500);
  v_maps := array(select r.id from (select x.* from sluice.workflow_run x where x.id = any (v_look)) r
    left join lateral (select k.id from sluice.task k where k.id = r.parent limit 1) t on true left join lateral (select k.state from sluice.done k where k.id = t.id limit 1) d on true
    where r.finished_at < v_now - case r.state when 's' then p_succeeded_ms when 'f' then p_failed_ms else p_cancelled_ms end * interval '1 millisecond'
      and (t.id is null or d.state = 's') order by r.id limit p_max);
  if v_maps <> '{}' then v_runs := v_runs || array(select r.id from sluice.workflow_run r where r.id = any (v_maps) for update skip locked); end if;
  if v_runs = '{}' then return; end if;
  with gone as (
    delete from sluice.workflow_task where id = any (array(select x.id from unnest(v_runs) r(id) cross join lateral (select w.id from sluice.workflow_task w where w.run = r.id limit p_max) x limit p_max)) returning id, run
  ) select array_agg(id), count(*), array_agg(distinct run) into v_ids, v_n, v_cut from gone;
  v_blocking := array(select b.id from unnest(v_ids) u(id) cross join lateral (select id from sluice.block k where k.id = u.id limit 1) b);
  delete from sluice.done where id = any (v_ids) and id <> all (v_blocking);
  delete from sluice.task where id = any (v_ids) and id <> all (v_blocking);
  v_runs := array(select r.id from unnest(v_runs) r(id) where not exists (select from sluice.workflow_task w where w.run = r.id));
  delete from sluice.workflow_node where run = any (v_runs);
  delete from sluice.workflow_event where run = any (v_runs);
  delete from sluice.workflow_unplaced where ctid = any (array(select ctid from sluice.workflow_unplaced where run = any (v_runs) for update skip locked));
  delete from sluice.workflow_run where id = any (v_runs);
  get diagnostics v_gone = row_count;
  update sluice.workflow_run set pruning = true where id = any (v_cut) and not pruning;
  pruned := v_n + v_gone;
  -- Of what was seen some may be left: the walk stays here.
  if pruned >= p_max then after := p_after; end if;
end $$;
