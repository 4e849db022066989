-- Keep: background work, and how long runs are kept.

-- Does the background work of runs: notes, timers, halts, tasks that run again. Any process may call it at any time;
-- each call takes what no other transaction holds. p_after: the run up to which the walk over runs with tasks that run
-- again has come, 0 to begin.
--
-- Takes the barrier shared, then runs with SKIP LOCKED, and lanes last. Returns how much moved, the milliseconds until
-- the next timer (null: there is none), whether nodes are to be placed, and where the walk goes on (after).
create or replace function sluice.workflow_keep(
  p_max int, p_after bigint default 0,
  out moved int, out next_ms bigint, out unplaced boolean, out after bigint
) language plpgsql set lock_timeout = '2s' /* settings: index plans */ as $$
declare v_now timestamptz := sluice.clock(); v record;
begin
  moved := 0;
  unplaced := false;
  after := 0;
  if not exists (select from sluice.workflow_active) then
    return;
  end if;
  perform sluice.barrier_shared();
  if exists (select from sluice.workflow_note) then
    select * into v from sluice.workflow_process_notes(p_max);
    moved := moved + v.taken;
    perform sluice.workflow_ring(v.streams, v.made);
  end if;
  if exists (select from sluice.workflow_timer where due_at <= v_now) then
    moved := moved + sluice.workflow_keep_timers(v_now, p_max);
  end if;
  moved := moved + sluice.workflow_keep_halts(p_max);
  -- Tasks that were asked to stop at the moment in which they went to sleep have not heard of it.
  for v in
    select s.id, min(s.reason) as reason
    from sluice.stop s
    cross join lateral (select p.id from sluice.parent p where p.id = s.id limit 1) p
    group by s.id limit p_max
  loop
    moved := moved + (select count(*) from sluice.cancel(array[v.id], v.reason) c where c.answer = 'cancelled');
  end loop;
  -- Last, because it locks lanes and nothing may wait for another lock after that.
  select * into v from sluice.workflow_keep_again(p_max, p_after);
  after := v.after;
  moved := moved + v.moved;
  if v.more then
    moved := greatest(moved, p_max);
  end if;
  next_ms := (
    select greatest(0, ceil(extract(epoch from due_at - v_now) * 1000))
    from sluice.workflow_timer where due_at > v_now order by due_at limit 1);
  unplaced := exists (select from sluice.workflow_unplaced);
end $$;
