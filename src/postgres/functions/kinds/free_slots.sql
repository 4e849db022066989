-- Returns the free slots of a total, including those kept for a task: that task may be among the kinds to wake.
create or replace function sluice.free_slots(p_total int, p_own_gates int[], p_own_n int[]) returns int
language plpgsql stable as $$
begin
  return sluice.gate_room(p_total, p_own_gates, p_own_n, (select g.kept_for from sluice.gate g where g.id = p_total));
end $$;
