-- The tasks of a node cannot be placed, because its inputs are not what the task takes: it fails. Whoever has it in
-- hand waits for the run's row, so we do not wait for his: what he leaves behind goes with the next take.
create or replace function sluice.workflow_misplaced(p_run bigint, p_node smallint, p_error json) returns boolean language plpgsql as $$
declare v record;
begin
  perform from sluice.workflow_run where id = p_run for no key update;
  update sluice.workflow_node set state = 'f', outcome = p_error, total = 0, finished_at = sluice.clock() where run = p_run and node = p_node and state = 'u';
  if not found then return false; end if;
  -- guard: nobody waits for a placer -> test/postgres/workflow/place.test.ts: "a node fails while another has it in hand, who waits for nobody but its run"
  delete from sluice.workflow_unplaced where ctid = any (array(select ctid from sluice.workflow_unplaced where run = p_run and node = p_node for update /* guard:locked */ skip locked /* end */));
  select * into v from sluice.workflow_cascade(array[p_run], array[p_node]);
  if v.made > 0 and exists (select from sluice.worker where asleep) then perform sluice.ring(v.streams, v.made); end if;
  return true;
end $$;
