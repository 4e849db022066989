-- Cancels at most p_max tasks of runs that have nodes to halt. Locks each run with SKIP LOCKED. Runs under the settings
-- of workflow_keep. Returns how many tasks.
create or replace function sluice.workflow_keep_halts(p_max int) returns int language plpgsql as $$
declare v_run bigint; v_left int := p_max;
begin
  -- Runs with tasks that have not been looked at come first; the others in random order, so that none is left out for
  -- ever.
  for v_run in
    select h.run from sluice.workflow_halt h group by h.run order by bool_and(h.item is null), random() limit 32
  loop
    perform from sluice.workflow_run where id = v_run for no key update skip locked;
    if found then
      v_left := v_left - sluice.workflow_halt_run(v_run, v_left);
    end if;
    exit when v_left <= 0;
  end loop;
  return p_max - v_left;
end $$;
