-- Retry: from what failed, in pieces.

-- Runs again from what failed: tasks that failed or were cancelled run again in their old place, of an each only
-- those items; whatever comes after them begins anew when its turn comes, also branches that the failure had
-- started. What succeeded before is kept. Tasks come back in pieces: the first here, the others by workflow_further or
-- a keeper. Returns how many nodes, 0 if nothing failed. p_token: see sluice.retried.
create function sluice.workflow_retry(p_run bigint, p_token bigint default null) returns int language plpgsql
set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare r sluice.workflow_run; v_seeds smallint[]; v_again smallint[]; v_after smallint[]; v_go smallint[]; v_before int;
begin
  perform sluice.workflow_shared(array[p_run]);
  -- Under the run's lock: a first call that is still under way has committed by now, or has not begun.
  -- guard: a retry of a run is asked for twice -> test/postgres/workflow/again.test.ts: "a retry of a run that is asked for again under its token is told the same, also when the run is paused"
  select x.answer into v_before from sluice.retried x where x.token = p_token;
  if found then return v_before; end if;
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
  perform sluice.workflow_activate();
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
  if r.paused then
    -- Waits for a task's fan-out that is about to be committed as paused, as a resume does.
    perform from sluice.workflow_run where id = p_run for update;
    perform sluice.workflow_lead(array[p_run], p_run);
  end if;
  v_after := array(select node from sluice.workflow_node n where n.run = p_run and n.node = any (v_go) and n.blocked = 0 order by node);
  if v_after <> '{}' then perform sluice.workflow_set_off(array_fill(p_run, array[cardinality(v_after)]), v_after); end if;
  perform sluice.workflow_again_run(p_run, 1000);
  if exists (select from sluice.workflow_again where run = p_run) then perform sluice.look_by(sluice.clock() + interval '100 milliseconds'); end if;
  perform sluice.note_retried(p_token, cardinality(v_seeds));
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
  perform sluice.workflow_activate();
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
  select paused and finished_at is null into v_paused from sluice.workflow_run where id = w.run for no key update;
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
