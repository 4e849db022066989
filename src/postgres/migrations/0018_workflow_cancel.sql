-- Cancel: a run, the rest of its tasks, and what these have fanned out.

-- The barrier shared and then the rows of these runs, by id. Whoever holds one may stand still, and whoever changes a limit
-- waits for the barrier alone: so both are let go again after a moment, which is what the rollback of a subtransaction
-- does, and asked for again, for ten seconds in all. False if there is no such run.
create function sluice.workflow_shared(p_runs bigint[]) returns boolean language plpgsql set lock_timeout = '300ms' as $$
begin
  for v_try in 1..25 loop
    begin
      perform sluice.barrier_shared();
      -- guard: the shared barrier is let go -> test/postgres/workflow/again.test.ts: "while another holds its run, a retry stops no change of a limit"
      perform from sluice.workflow_run where id = any (p_runs) order by id for no key update;
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
  if exists (select from sluice.workflow_halt where run = p_run) then perform sluice.look_by(sluice.clock() + interval '100 milliseconds'); end if;
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
  v_maps := array(select r.id from sluice.workflow_run r where r.id = any (v_maps) and r.finished_at is null order by r.id for no key update skip locked);
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
