-- Returns whether this kind as a whole is stuck and still cannot run.
create or replace function sluice.is_stuck(p_stream int, p_gate int) returns boolean
language plpgsql stable /* settings: index plans */ as $$
begin
  return /* guard:stuck */ exists /* end */ (
      select from sluice.stuck s
      where s.stream = p_stream and s.gate = any (array[0, p_gate]) and s.lane = 0)
    and not sluice.is_open(p_stream, p_gate, false);
end $$;
