-- Returns whether tasks of this kind could start now: its totals have room and a worker serves it. p_free: as in
-- has_taker.
create or replace function sluice.is_open(p_stream int, p_gate int, p_free boolean) returns boolean
language plpgsql stable as $$
begin
  return sluice.has_taker(p_stream, p_free)
    and sluice.gate_room((select s.gate from sluice.stream s where s.id = p_stream), null, null) > 0
    and sluice.gate_room(p_gate, null, null) > 0;
end $$;
