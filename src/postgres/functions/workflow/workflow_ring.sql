-- Wakes workers for p_made new tasks of these streams, if there are any and a worker sleeps.
create or replace function sluice.workflow_ring(p_streams int[], p_made int) returns void language plpgsql as $$
begin
  if p_made > 0 and exists (select from sluice.worker where asleep) then
    perform sluice.ring(p_streams, p_made);
  end if;
end $$;
