-- Lets a node run whose tasks are all placed. Locks the run's row, last, so that nothing waits for it longer than for a
-- commit. Returns false if the node does not wait for its tasks any more, because its run was cancelled or paused
-- meanwhile; then the caller rolls back what it placed.
create or replace function sluice.workflow_placed(p_run bigint, p_node smallint) returns boolean language plpgsql as $$
declare v sluice.workflow_node; v_placed int; v_outer bigint; v_paused boolean := false;
begin
  -- A handler's fan-out is paused from its beginning if the run of its task is. A pause of that run locks its row FOR
  -- UPDATE and looks up the fan-outs of its tasks after the commit: so one of the two sees the other. Its id is lower
  -- than ours. FOR KEY SHARE stops a pause or a resume and nothing else: however many tasks fan out, no settle waits.
  v_outer := (select r.outer_run from sluice.workflow_run r where r.id = p_run);
  if v_outer is not null then
    -- guard: no settle waits for a map in the making -> test/postgres/workflow/inner.test.ts: "a settle of a run does not wait for a map that one of its tasks is creating"
    -- guard: a map is paused with the run of its task -> test/postgres/workflow/races.test.ts: "a map that is created beside a pause of its run is paused, in either order"
    select r.paused into v_paused from sluice.workflow_run r where r.id = v_outer
      /* guard:parent-run */ for /* guard:key-share */ key /* end */ share /* end */;
  end if;
  perform from sluice.workflow_run where id = p_run for no key update;
  select * into v from sluice.workflow_node where run = p_run and node = p_node;
  -- guard: placed only while it is wanted -> test/postgres/workflow/place.test.ts: "a run that is cancelled while its tasks are placed gets none"
  if /* guard:wanted */ v.state <> 'placing' /* end */ then
    return false;
  end if;
  v_placed := (select count(*) from sluice.workflow_task where run = p_run and node = p_node);
  if v_placed <> v.total then
    perform sluice.refuse('invalid_option', format('only %s of %s tasks were placed', v_placed, v.total));
  end if;
  update sluice.workflow_node
  set state = 'running',
    task = case when v.kind = 'task' then (select id from sluice.workflow_task where run = p_run and node = p_node) end
  where run = p_run and node = p_node;
  delete from sluice.workflow_unplaced where run = p_run and node = p_node;
  if v_paused then
    update sluice.workflow_run set paused = true where id = p_run;
  end if;
  perform sluice.workflow_limit_idle_commit();
  perform sluice.workflow_ring(array[v.stream], v.total);
  return true;
end $$;
