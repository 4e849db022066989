-- Returns whether tasks of this kind can start sooner or later: a worker serves it, and none of its totals is 0.
create or replace function sluice.may_run(p_stream int, p_gate int) returns boolean language plpgsql stable as $$
begin
  return sluice.has_taker(p_stream, false)
    and not exists (
      select from sluice.gate g
      where g.cap = 0
        and g.id = any (sluice.gates_of(p_gate) || (select s.gate from sluice.stream s where s.id = p_stream)));
end $$;
