-- Ends runs: notifies clients that wait for one, deletes their events and halts, and wakes parents that wait for their
-- children. The caller holds the locks of the runs.
create or replace function sluice.workflow_finish_runs(p_runs bigint[], p_parents bigint[]) returns void
language plpgsql as $$
begin
  if exists (select from sluice.awaited) then
    -- A run is awaited under the negative of its id, which no task has.
    perform sluice.tell_awaited(array(
      select distinct a.id from sluice.awaited a where a.id = any (array(select -r from unnest(p_runs) r))));
  end if;
  delete from sluice.workflow_event where run = any (p_runs);
  delete from sluice.workflow_halt where run = any (p_runs);
  if p_parents is not null then
    perform sluice.workflow_wake(p_parents);
  end if;
end $$;
