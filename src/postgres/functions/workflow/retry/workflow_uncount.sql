-- Prepares a single retry of a task of a run: only while its node runs, which then counts the task as not over. Locks
-- the run. Returns true if the task may be retried; false if it is about to be counted just now, so the caller asks
-- again; null if a retry of its run is bringing it back.
create or replace function sluice.workflow_uncount(p_id bigint) returns boolean language plpgsql as $$
declare w sluice.workflow_task; v_state sluice.state; v_paused boolean;
begin
  select * into w from sluice.workflow_task where id = p_id;
  -- Also a run that is over: a retry of it may be under way.
  select paused and finished_at is null into v_paused from sluice.workflow_run where id = w.run for no key update;
  select state into v_state from sluice.done where id = p_id and sluice.workflow_is_unsuccessful(state);
  if not found then
    return false;
  end if;
  -- guard: not counted twice -> test/postgres/workflow/again.test.ts: "a task that a retry of its run is bringing back is not brought back twice"
  if exists (
    select from sluice.workflow_again a
    where a.run = w.run and a.node = w.node and (w.item > a.item or p_id = any (a.pending))
  ) then
    /* guard:once */ return /* end */ null;
  end if;
  if v_paused then
    perform sluice.refuse('workflow_paused', 'the run of this task is paused: resume it first');
  end if;
  -- In this order: a transaction that sees the outcome sees its note too, and none is taken while we hold the run.
  if exists (select from sluice.workflow_note where id = p_id) then
    return false;
  end if;
  update sluice.workflow_node
  set failed = failed - case when v_state = 'failed' then 1 else 0 end,
    cancelled = cancelled - case when v_state = 'cancelled' then 1 else 0 end
  where run = w.run and node = w.node and state = 'running' and not failing;
  if not found then
    perform sluice.refuse('workflow_over',
      'the node of this task has ended or is being cancelled: retry the run instead');
  end if;
  return true;
end $$;
