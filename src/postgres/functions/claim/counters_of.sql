-- The totals that these sources need, and those of which slots were freed, ascending. A limit that was removed has no
-- counter: it is not among them, and limits nothing.
create or replace function sluice.counters_of(p_sources sluice.source[], p_own_gates int[]) returns int[]
language plpgsql as $$
begin
  return array(
    select t.id from (
      select distinct y.gate from unnest(p_sources) x
      cross join lateral unnest(sluice.gates_of(x.gate) || x.stream_gate || p_own_gates) y(gate)) w
    cross join lateral (select k.id from sluice.gate k where k.id = w.gate limit 1) t order by t.id);
end $$;
