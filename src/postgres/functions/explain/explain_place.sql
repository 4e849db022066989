-- Returns where a task stands that does not run. held: how many of its lanes it holds a slot of. through: it has passed
-- all lanes. stands: it waits in the line of the next lane. parked: it has left the line. run_at: when it is due, if it
-- is scheduled. runs: the runs that it waits for, if any has not ended.
create or replace function sluice.explain_place(
  p_task sluice.task,
  out held int, out through boolean, out stands boolean, out parked boolean, out run_at timestamptz, out runs json)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  x record;
begin
  held := coalesce(cardinality(p_task.lanes), 0);
  through := true;
  stands := false;
  parked := false;
  select c.run_at, c.held into x from sluice.scheduled c where c.id = p_task.id;
  if found then
    held := x.held;
    through := false;
    run_at := x.run_at;
  end if;
  select p.held, (
      select json_agg(r.id::text order by r.id) from sluice.workflow_run r
      where r.id = any (p.runs) and r.finished_at is null) as runs
  into x
  from sluice.parent p where p.id = p_task.id;
  if found then
    held := x.held;
    through := false;
    runs := x.runs;
  end if;
  select p.held into x from sluice.parked p where p.id = p_task.id;
  if found then
    held := x.held;
    through := false;
    parked := true;
  end if;
  select q.held into x
  from unnest(p_task.lanes) l(id)
  cross join lateral (
    select y.held from sluice.waiting y
    where y.lane = l.id and y.place = sluice.lane_place(l.id, p_task.rank) and y.id = p_task.id
    limit 1) q;
  if found then
    held := x.held;
    through := false;
    stands := true;
  end if;
end $$;
