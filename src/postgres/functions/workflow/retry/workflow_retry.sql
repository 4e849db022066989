-- Retry: from what failed, in pieces.

-- Runs again from what failed: tasks that failed or were cancelled run again in their old place, of an each only
-- those items; whatever comes after them begins anew when its turn comes, also branches that the failure had
-- started. What succeeded before is kept. Tasks come back in pieces: the first here, the others by workflow_further or
-- a keeper. Returns how many nodes, 0 if nothing failed. p_token: see sluice.retried.
create or replace function sluice.workflow_retry(p_run bigint, p_token bigint default null) returns int language plpgsql
set lock_timeout = '2s' /* settings: index plans */ as $$
declare r sluice.workflow_run; v_seeds smallint[]; v_again smallint[]; v_after smallint[]; v_go smallint[]; v_before int;
begin
  perform sluice.workflow_shared(array[p_run]);
  -- Under the run's lock: a first call that is still under way has committed by now, or has not begun.
  -- guard: a retry of a run is asked for twice -> test/postgres/workflow/again.test.ts: "a retry of a run that is asked for again under its token is told the same, also when the run is paused"
  select x.answer into v_before from sluice.retried x where x.token = p_token;
  /* guard:once */ if found then return v_before; end if; /* end */
  select * into r from sluice.workflow_run where id = p_run;
  -- guard: what is being pruned is gone -> test/postgres/workflow/keep.test.ts: "a run of which a part is pruned is gone for whoever asks"
  if not found /* guard:pruning */ or r.pruning /* end */ then perform sluice.refuse('run_not_found', 'there is no such run'); end if;
  if r.finished_at is null and r.stopping then perform sluice.refuse('workflow_stopping', 'the run is being cancelled: wait for its end'); end if;
  -- guard: a paused run starts nothing -> test/postgres/workflow/operate.test.ts: "of a paused run is refused until it is resumed; one that ended while it was paused goes on"
  if /* guard:paused */ r.finished_at is null and r.paused /* end */ then perform sluice.refuse('workflow_paused', 'the run is paused: resume it first'); end if;
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
  if exists (select from sluice.workflow_node n where n.run = p_run and n.node = any (v_after) and /* guard:running */ n.state in ('r', 'u', 'h') /* end */) then
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
    /* guard:resume */ perform sluice.workflow_lead(array[p_run], p_run); /* end */
  end if;
  v_after := array(select node from sluice.workflow_node n where n.run = p_run and n.node = any (v_go) and n.blocked = 0 order by node);
  if v_after <> '{}' then perform sluice.workflow_set_off(array_fill(p_run, array[cardinality(v_after)]), v_after); end if;
  perform sluice.workflow_again_run(p_run, /* guard:piece */ 1000 /* end */);
  if exists (select from sluice.workflow_again where run = p_run) then perform sluice.look_by(sluice.clock() + interval '100 milliseconds'); end if;
  perform sluice.note_retried(p_token, cardinality(v_seeds));
  return cardinality(v_seeds);
end $$;
