-- Returns the totals that a task's gate stands for.
create or replace function sluice.gates_of(p_gate int) returns int[] language plpgsql stable as $$
begin
  if p_gate > 0 then return array[p_gate]; end if;
  if p_gate = 0 then return '{}'; end if;
  return (select s.gates /* guard:sets */ from /* end */ sluice.gate_set s where s.id = p_gate);
end $$;
