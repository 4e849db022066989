-- Fails a node whose tasks cannot be placed, because its inputs are not what the task takes, and advances its run.
-- Locks the run. A transaction that holds the node's row waits for the run's, so this does not wait for the node's row:
-- if it stays behind, the next take deletes it. Returns false if the node is not to be placed any more.
create or replace function sluice.workflow_misplaced(p_run bigint, p_node smallint, p_error json) returns boolean
language plpgsql as $$
declare v record;
begin
  perform from sluice.workflow_run where id = p_run for no key update;
  update sluice.workflow_node
  set state = 'failed', outcome = p_error, total = 0, finished_at = sluice.clock()
  where run = p_run and node = p_node and state = 'placing';
  if not found then
    return false;
  end if;
  -- guard: nobody waits for a placer -> test/postgres/workflow/place.test.ts: "a node that another session has locked can fail, and that session waits only for the run"
  delete from sluice.workflow_unplaced
  where ctid = any (array(
    select ctid from sluice.workflow_unplaced where run = p_run and node = p_node
    for update /* guard:locked */ skip locked /* end */));
  select * into v from sluice.workflow_cascade(array[p_run], array[p_node]);
  perform sluice.workflow_ring(v.streams, v.made);
  return true;
end $$;
