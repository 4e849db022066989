-- Retry: from the failure, in batches.

-- Runs a run again from what failed. Tasks that failed or were cancelled run again in their old place; of an each only
-- those items. Everything after them begins anew when its turn comes, also branches that the failure had started. What
-- succeeded before is kept. Tasks come back in batches: the first here, the others by workflow_continue or a keeper.
-- Locks the run (workflow_lock_shared), then lanes. p_token: see sluice.retried. Returns how many nodes run again from
-- the failure, 0 if nothing failed.
create or replace function sluice.workflow_retry(p_run bigint, p_token bigint default null) returns int
language plpgsql set lock_timeout = '2s' /* settings: index plans */ as $$
declare
  r sluice.workflow_run; v_before int;
  v_seeds smallint[]; v_again smallint[]; v_after smallint[]; v_anew smallint[]; v_free smallint[];
begin
  perform sluice.workflow_lock_shared(array[p_run]);
  -- Under the run's lock: a first call that is still under way has committed by now, or has not begun.
  -- guard: a retry of a run is asked for twice -> test/postgres/workflow/again.test.ts: "a repeated retry of a run with the same token returns the same answer, also when the run is paused"
  select x.answer into v_before from sluice.retried x where x.token = p_token;
  /* guard:once */ if found then return v_before; end if; /* end */
  r := sluice.workflow_retriable(p_run);
  v_seeds := sluice.workflow_retry_seeds(p_run, r.graph);
  if v_seeds = '{}' then
    return 0;
  end if;
  perform sluice.workflow_activate();
  v_after := sluice.workflow_after(r.graph, v_seeds);
  -- guard: not beside what still runs -> test/postgres/workflow/operate.test.ts: "retry is refused beside a running branch that the failure started"
  if exists (
    select from sluice.workflow_node n
    where n.run = p_run and n.node = any (v_after) and /* guard:running */ sluice.workflow_is_live(n.state) /* end */
  ) then
    perform sluice.refuse(
      'workflow_running', 'a branch after the failure is still running: wait until it ends, or cancel the run');
  end if;
  -- Seeds that have tasks run these again, unless they come after another seed: then they run anew, from new inputs.
  v_again := array(
    select n.node from sluice.workflow_node n
    where n.run = p_run and n.node = any (v_seeds) and n.node <> all (v_after)
      and exists (select from sluice.workflow_task w where w.run = p_run and w.node = n.node)
    order by n.node);
  v_anew := array(select distinct n from unnest(v_seeds || v_after) n where n <> all (v_again) order by n);
  perform sluice.workflow_retry_reset(p_run, r.graph, v_again, v_anew);
  -- guard: a retry resumes what was fanned out -> test/postgres/workflow/inner.test.ts: "maps of a paused run continue when the run is cancelled and retried"
  if r.paused then
    -- Waits for a task's fan-out that is about to be committed as paused, as a resume does.
    perform from sluice.workflow_run where id = p_run for update;
    /* guard:resume */ perform sluice.workflow_lead(array[p_run], p_run); /* end */
  end if;
  v_free := array(
    select node from sluice.workflow_node n
    where n.run = p_run and n.node = any (v_anew) and n.blocked = 0 order by node);
  if v_free <> '{}' then
    perform sluice.workflow_begin_nodes(array_fill(p_run, array[cardinality(v_free)]), v_free);
  end if;
  perform sluice.workflow_again_run(p_run, /* guard:piece */ 1000 /* end */);
  if exists (select from sluice.workflow_again where run = p_run) then
    perform sluice.poll_by(sluice.clock() + interval '100 milliseconds');
  end if;
  perform sluice.note_retried(p_token, cardinality(v_seeds));
  return cardinality(v_seeds);
end $$;
