-- Cancels the fan-outs of tasks that were cancelled in this transaction, at most p_max of their items here. Takes runs
-- with SKIP LOCKED, so the caller may hold any other locks: a fan-out that another transaction holds is noted
-- (workflow_note_orphans_of), for workflow_cancel_maps or a keeper. Returns how many items.
create or replace function sluice.workflow_cancel_maps_of(p_tasks bigint[], p_max int) returns int
language plpgsql /* settings: index plans */ as $$
declare v_maps bigint[] := sluice.workflow_inner_maps(null, p_tasks, 1000); v_run bigint; v_n int := 0;
begin
  if v_maps = '{}' then
    return 0;
  end if;
  v_maps := array(
    select r.id from sluice.workflow_run r
    where r.id = any (v_maps) and r.finished_at is null order by r.id for no key update skip locked);
  perform sluice.workflow_stop_maps(v_maps);
  foreach v_run in array v_maps loop
    exit when v_n >= p_max;
    v_n := v_n + sluice.workflow_halt_run(v_run, p_max - v_n);
  end loop;
  return v_n;
end $$;
