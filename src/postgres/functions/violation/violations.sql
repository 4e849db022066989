-- Returns what must never be: slots that differ from their holders, a lane or gate above its capacity although its
-- number was never lowered, a waiter that nothing will wake, a task in two states or in none; and of runs: more
-- running tasks than a window allows, counts that differ from tasks, a run that nothing moves, one that has ended too
-- early. It is a function, because a view cannot turn JIT off, which would take a hundred times as long as the query.
create or replace function sluice.violations()
returns table (what text, id bigint, used bigint, cap bigint, held bigint) language sql stable set jit = off as $$
  select * from sluice.slot_violations()
  union all select * from sluice.task_violations()
  union all select * from sluice.node_violations()
  union all select * from sluice.run_violations()
$$;
