-- Cancels fan-outs of tasks that were cancelled (p_tasks), or whose run was (p_run), and the fan-outs of their items: a
-- batch of at most p_max items. For callers that do not want to wait for a keeper, in a transaction of its own. Locks
-- the runs by id (workflow_lock_shared). Returns true if there is more to do, so that the caller calls again.
create or replace function sluice.workflow_cancel_maps(p_run bigint, p_tasks bigint[], p_max int) returns boolean
language plpgsql set lock_timeout = '2s' /* settings: index plans */ as $$
declare v_maps bigint[]; v_run bigint; v_left int := p_max;
begin
  if p_run is not null and not exists (select from sluice.workflow_run r where r.id = p_run and r.stopping) then
    return false;
  end if;
  v_maps := sluice.workflow_inner_maps(p_run, p_tasks, 200);
  if v_maps = '{}' then
    return false;
  end if;
  -- guard: who has a map in hand is waited for -> test/postgres/workflow/races.test.ts: "a map that another session has locked is closed when its run is cancelled"
  perform sluice.workflow_lock_shared(v_maps);
  perform sluice.workflow_stop_maps(v_maps);
  foreach v_run in array v_maps loop
    exit when v_left <= 0;
    v_left := v_left - sluice.workflow_halt_run(v_run, v_left);
  end loop;
  return sluice.workflow_inner_maps(p_run, p_tasks, 1) <> '{}';
end $$;
