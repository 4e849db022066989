-- The run, whose lock the caller holds, if it may be retried now; refuses otherwise.
create or replace function sluice.workflow_retriable(p_run bigint) returns sluice.workflow_run language plpgsql as $$
declare r sluice.workflow_run;
begin
  select * into r from sluice.workflow_run where id = p_run;
  -- guard: what is being pruned is gone -> test/postgres/workflow/keep.test.ts: "a run that is partly pruned does not exist for any caller"
  if not found /* guard:pruning */ or r.pruning /* end */ then
    perform sluice.refuse('run_not_found', 'there is no such run');
  end if;
  if r.finished_at is null and r.stopping then
    perform sluice.refuse('workflow_stopping', 'the run is being cancelled: retry it after it has ended');
  end if;
  -- guard: a paused run starts nothing -> test/postgres/workflow/operate.test.ts: "retry of a paused run is refused until it is resumed, and a run that ended while paused continues"
  if /* guard:paused */ r.finished_at is null and r.paused /* end */ then
    perform sluice.refuse('workflow_paused', 'the run is paused: resume it first');
  end if;
  if r.parent is not null then
    perform sluice.refuse('invalid_option', 'this run is the fan-out of a handler: retry its task instead');
  end if;
  return r;
end $$;
