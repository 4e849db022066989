-- Pauses or resumes a run. While it is paused, no node of it begins, nothing is placed and nothing passes a window;
-- tasks that are ready outside of a window, or run, go on. Fan-outs of its tasks follow (workflow_follow, by the caller
-- or a keeper). Takes the exclusive barrier and the run's lock. Returns false if there is no such run, or it is over.
create or replace function sluice.workflow_pause(p_run bigint, p_paused boolean) returns boolean
language plpgsql set lock_timeout = '2s' as $$
declare v_nodes smallint[];
begin
  if not sluice.workflow_lock_exclusive(array[p_run]) then
    return false;
  end if;
  update sluice.workflow_run set paused = p_paused where id = p_run and finished_at is null;
  if not found then
    return false;
  end if;
  perform sluice.workflow_apply_windows(array[p_run]);
  perform sluice.workflow_lead(array[p_run], p_run);
  if p_paused then
    -- guard: what is to be placed is held -> test/postgres/workflow/place.test.ts: "nothing of a paused run is placed"
    update sluice.workflow_node set state = 'held'
    where /* guard:unplaced */ run = p_run and state = 'placing' /* end */;
    -- A row that another transaction holds is being placed: that transaction finds that the node is not wanted now.
    delete from sluice.workflow_unplaced
    where ctid = any (array(select ctid from sluice.workflow_unplaced where run = p_run for update skip locked));
    return true;
  end if;
  v_nodes := array(select node from sluice.workflow_node where run = p_run and state = 'held' order by node);
  if v_nodes = '{}' then
    return true;
  end if;
  perform sluice.workflow_begin_nodes(array_fill(p_run, array[cardinality(v_nodes)]), v_nodes);
  return true;
end $$;
