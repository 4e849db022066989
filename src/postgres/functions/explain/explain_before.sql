-- Counts the tasks of the same type and gate that workers take before this one, up to 10,000.
create or replace function sluice.explain_before(p_task sluice.task, p_turn bigint) returns int
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
  return (
    select count(*)
    from (
      (select from sluice.ready r
        where p_task.gate = 0 and r.stream = p_task.stream and (r.rank, r.turn) < (p_task.rank, p_turn)
        limit 10000)
      union all
      (select from sluice.gated g
        where p_task.gate <> 0 and g.stream = p_task.stream and g.gate = p_task.gate
          and (g.rank, g.turn) < (p_task.rank, p_turn)
        limit 10000)) y);
end $$;
