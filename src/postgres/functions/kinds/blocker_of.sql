-- Returns the first total of a kind that has no slot for its head, or null. Reads without locks, like gate_room.
create or replace function sluice.blocker_of(p_gate int, p_own_gates int[], p_own_n int[], p_head bigint) returns int
language plpgsql stable as $$
begin
  return (
    select t from unnest(sluice.gates_of(p_gate)) t
    where sluice.gate_room(t, p_own_gates, p_own_n, p_head) <= 0
    order by t
    limit 1);
end $$;
