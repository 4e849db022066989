-- Returns how many slots of a gate are in use.
create or replace function sluice.gate_used(p_gate int) returns int language sql stable as $$
  select (g.used - coalesce((select sum(c.n) from sluice.credit c where c.gate = g.id), 0))::int
  from sluice.gate g
  where g.id = p_gate
$$;
