-- Keep: what must happen without anyone asking, and how long runs are kept.

-- What must happen without anyone asking: notes, timers, halts, tasks that are to run again. Any process may
-- call it at any time; each takes what no other has in hand. next_ms: until the next timer, null if there is none.
-- p_after: the run up to which a walk over those of which tasks are to run again has come, 0 to begin; after: where to go on.
create function sluice.workflow_keep(p_max int, p_after bigint default 0, out moved int, out next_ms bigint, out unplaced boolean, out after bigint)
language plpgsql set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_now timestamptz := sluice.clock(); v record; v_runs bigint[]; v_heard bigint[]; v_nodes smallint[]; v_run bigint; v_left int := p_max; v_from bigint; v_look bigint[];
begin
  moved := 0; unplaced := false; after := 0;
  if not exists (select from sluice.workflow_active) then return; end if;
  perform sluice.barrier_shared();
  if exists (select from sluice.workflow_note) then
    select * into v from sluice.workflow_notes(p_max);
    moved := moved + v.taken;
    if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
  end if;
  -- A run's row first, then its timers: whoever holds the run may delete them.
  if exists (select from sluice.workflow_timer where due_at <= v_now) then
    v_runs := array(select r.id from sluice.workflow_run r where r.id = any (array(select t.run from sluice.workflow_timer t where t.due_at <= v_now order by t.due_at limit p_max))
      order by r.id for no key update skip locked);
    -- An event that was sent in time wins, wherever its note stands in the line.
    -- guard: an event in time beats its timeout -> test/postgres/workflow/wait.test.ts: "an event that was sent in time wins over its timeout, however many notes stand before it"
    v_heard := array(select t from unnest(v_runs) t where exists (select from sluice.workflow_event e where e.run = t));
    if v_heard <> '{}' then
      select * into v from sluice.workflow_heard(v_heard);
      moved := moved + v.made;
      if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
    end if;
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
    perform from sluice.workflow_run where id = v_run for no key update skip locked;
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
    v_runs := array(select r.id from sluice.workflow_run r where r.id = any (v_look) and not r.paused order by r.id for no key update skip locked);
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
    select * into v_run from sluice.workflow_run where id = v.run for no key update skip locked;
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

-- The first of these runs that have no more than p_max nodes together; at least one, whose nodes are at most 500.
create function sluice.workflow_few_nodes(p_runs bigint[], p_max int) returns bigint[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_run bigint; v_runs bigint[] := '{}'; v_n int := 0;
begin
  foreach v_run in array p_runs loop
    v_n := v_n + (select count(*) from sluice.workflow_node n where n.run = v_run);
    exit when v_n > p_max and v_runs <> '{}';
    v_runs := v_runs || v_run;
  end loop;
  return v_runs;
end $$;

-- Runs older than their time, with their tasks: at most p_max tasks, runs and nodes at once. One of which only a part is gone
-- is marked, and gone for whoever asks. A task that still holds its order key is let go from its run and stays. A
-- handler's fan-out is kept while its task may ask for it: also one that failed may be tried again. So old ones may stay
-- for long, and are looked at in parts: the oldest, and some by a walk, which has come up to p_after, 0 to begin; after:
-- where to go on, 0: it has come to the end.
create function sluice.workflow_prune(p_succeeded_ms bigint, p_failed_ms bigint, p_cancelled_ms bigint, p_max int, p_after bigint default 0, out pruned int, out after bigint) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_now timestamptz := sluice.clock(); v_runs bigint[]; v_look bigint[]; v_maps bigint[]; v_cut bigint[]; v_ids bigint[]; v_blocking bigint[]; v_n int; v_bare int; v_gone int;
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
  v_bare := cardinality(v_runs);
  -- guard: few nodes at once -> test/postgres/workflow/keep.test.ts: "pruning deletes a bounded number of nodes at once, whole runs at a time"
  v_runs := sluice.workflow_few_nodes(v_runs, p_max);
  delete from sluice.workflow_node where run = any (v_runs);
  delete from sluice.workflow_event where run = any (v_runs);
  delete from sluice.workflow_unplaced where ctid = any (array(select ctid from sluice.workflow_unplaced where run = any (v_runs) for update skip locked));
  delete from sluice.workflow_run where id = any (v_runs);
  get diagnostics v_gone = row_count;
  update sluice.workflow_run set pruning = true where id = any (v_cut) and not pruning;
  pruned := v_n + v_gone;
  if v_gone < v_bare then pruned := greatest(pruned, p_max); end if;
  -- Of what was seen some may be left: the walk stays here.
  if pruned >= p_max then after := p_after; end if;
end $$;
