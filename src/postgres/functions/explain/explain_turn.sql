-- Returns the turn of a task: the one it has drawn in ready or gated, else its own.
create or replace function sluice.explain_turn(p_task sluice.task) returns bigint
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
  return coalesce(
    (select r.turn from sluice.ready r where p_task.lanes is not null and r.lanes is not null and r.id = p_task.id),
    (select g.turn from sluice.gated g where p_task.lanes is not null and g.lanes is not null and g.id = p_task.id),
    sluice.own_turn(p_task.id));
end $$;
