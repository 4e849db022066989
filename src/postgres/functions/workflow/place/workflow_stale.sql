-- Deletes a row that the caller holds, of a node that does not wait for its tasks. Under the run's lock, because a
-- resume lets the node wait again and takes the row that it finds for its own. If another transaction holds the run,
-- the row is put off for a second.
create or replace function sluice.workflow_stale(p_run bigint, p_node smallint) returns void language plpgsql as $$
begin
  perform from sluice.workflow_run r where r.id = p_run for no key update skip locked;
  -- guard: stale under the lock -> test/postgres/workflow/place.test.ts: "a resume beside the removal of stale rows loses nothing"
  if /* guard:again */ not found /* end */ and exists (select from sluice.workflow_run r where r.id = p_run) then
    update sluice.workflow_unplaced u
    set due_at = sluice.clock() + interval '1 second'
    where u.run = p_run and u.node = p_node;
    return;
  end if;
  delete from sluice.workflow_unplaced u
  where u.run = p_run and u.node = p_node
    and not exists (select from sluice.workflow_node n where n.run = p_run and n.node = p_node and n.state = 'placing');
end $$;
