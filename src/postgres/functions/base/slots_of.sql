-- Turns numbers of tasks per gate into numbers of slots per total. p_n: how many tasks have each gate of p_gates.
create or replace function sluice.slots_of(p_gates int[], p_n int[], out gates int[], out n int[])
language plpgsql stable as $$
begin
  if 0 <= all (p_gates) then
    select array_agg(x.gate order by x.gate), array_agg(x.n order by x.gate)
    into gates, n
    from (
      select u.gate, sum(u.n)::int as n
      from unnest(p_gates, p_n) u(gate, n)
      where u.gate > 0
      group by u.gate) x;
  else
    select array_agg(x.gate order by x.gate), array_agg(x.n order by x.gate)
    into gates, n
    from (
      select g.gate, sum(u.n)::int as n
      from unnest(p_gates, p_n) u(gate, n)
      cross join lateral unnest(sluice.gates_of(u.gate)) g(gate)
      group by g.gate) x;
  end if;
end $$;
