-- Adds to what settles freed the slots of totals, each total once and sets as their totals, and what a claim that uses
-- them again must know.
create or replace function sluice.freed_totals(p_freed sluice.freed, p_gone sluice.gone) returns sluice.freed
language plpgsql as $$
begin
  if p_gone.gates[1] = all (p_gone.gates) and p_gone.stream_gates[1] = all (p_gone.stream_gates) then
    -- Tasks of one type have the same totals.
    p_freed.gates := array_remove(array[p_gone.gates[1], p_gone.stream_gates[1]], 0);
    p_freed.gates_n := array_fill(cardinality(p_gone.settled), array[cardinality(p_freed.gates)]);
  else
    p_freed.gates := array_remove(p_gone.gates || p_gone.stream_gates, 0);
    p_freed.gates_n := array_fill(1, array[cardinality(p_freed.gates)]);
  end if;
  if cardinality(p_freed.gates) > 1 or p_freed.gates[1] < 0 then
    select f.gates, f.n into p_freed.gates, p_freed.gates_n from sluice.slots_of(p_freed.gates, p_freed.gates_n) f;
  end if;
  select exists (select from sluice.gate g where g.kept_for is not null),
    exists (select from sluice.stream s where s.many)
  into p_freed.kept, p_freed.many;
  return p_freed;
end $$;
