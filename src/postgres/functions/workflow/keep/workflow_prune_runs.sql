-- Deletes runs without tasks, and everything that belongs to them. The caller holds their locks; rows of nodes that are
-- to be placed are taken with SKIP LOCKED. Runs under the settings of workflow_prune. Returns how many runs.
create or replace function sluice.workflow_prune_runs(p_runs bigint[]) returns int language plpgsql as $$
declare v_gone int;
begin
  delete from sluice.workflow_node where run = any (p_runs);
  delete from sluice.workflow_event where run = any (p_runs);
  delete from sluice.workflow_unplaced
  where ctid = any (array(select ctid from sluice.workflow_unplaced where run = any (p_runs) for update skip locked));
  delete from sluice.workflow_run where id = any (p_runs);
  get diagnostics v_gone = row_count;
  return v_gone;
end $$;
