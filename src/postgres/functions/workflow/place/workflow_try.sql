-- Records that the user's code is about to run for nodes that the caller holds in another transaction, so that a schema
-- or a key function that kills the process is counted. Does not wait for the disk: a server that dies may forget it.
-- Returns the id of the try.
create or replace function sluice.workflow_try(p_runs bigint[], p_nodes smallint[], p_worker bigint) returns bigint
language plpgsql as $$
declare v_id bigint;
begin
  perform set_config('synchronous_commit', 'off', true);
  -- Tries of nodes that were not taken again, because their runs are gone.
  delete from sluice.workflow_trying
  where id = any (array(
    select t.id from sluice.workflow_trying t where t.begun_at < sluice.clock() - interval '1 day'
    for update skip locked));
  insert into sluice.workflow_trying (worker, runs, nodes) values (p_worker, p_runs, p_nodes) returning id into v_id;
  return v_id;
end $$;
