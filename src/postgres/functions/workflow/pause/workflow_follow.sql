-- Lets fan-outs of a run's tasks follow its pause or resume: at most p_max in one transaction, so that workers wait for
-- a batch and not for all; then the fan-outs of their tasks. p_root: the run that was paused or resumed, null for any
-- that was left undone. The state is read, not given: if one caller pauses and another resumes at the same moment, all
-- follow the later one.
--
-- Takes the exclusive barrier, and fan-outs with SKIP LOCKED. Returns how many moved, and whether to call again (more).
-- None moved and more: other transactions hold the rest.
create or replace function sluice.workflow_follow(p_root bigint, p_max int, out moved int, out more boolean)
language plpgsql set lock_timeout = '2s' /* settings: index plans */ as $$
declare v_run bigint; v_root bigint; v_maps bigint[]; v_held bigint[];
begin
  moved := 0;
  more := exists (select from sluice.workflow_lead x where p_root is null or x.root = p_root);
  if not more then
    return;
  end if;
  perform sluice.barrier_exclusive();
  select x.run, x.root into v_run, v_root from sluice.workflow_lead x
  where p_root is null or x.root = p_root order by x.run limit 1 for update;
  if not found then
    more := false;
    return;
  end if;
  v_maps := array(
    select m.id from sluice.workflow_run m
    where m.outer_run = v_run and m.finished_at is null
      and m.paused <> (select o.paused from sluice.workflow_run o where o.id = v_run)
    order by m.id limit p_max);
  -- A transaction that makes a fan-out, or places its items, holds it without the barrier, and may be stalled.
  v_held := array(
    select m.id from sluice.workflow_run m where m.id = any (v_maps) order by m.id for update skip locked);
  update sluice.workflow_run m set paused = not m.paused where m.id = any (v_held);
  moved := cardinality(v_held);
  if moved > 0 then
    perform sluice.workflow_apply_windows(v_held);
    perform sluice.workflow_lead(v_held, v_root);
  end if;
  if moved = cardinality(v_maps) and moved < p_max then
    delete from sluice.workflow_lead x where x.run = v_run;
    more := exists (select from sluice.workflow_lead x where p_root is null or x.root = p_root);
  end if;
end $$;
