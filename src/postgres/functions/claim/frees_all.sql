-- Whether a step has freed as many slots of every total that a task of this source needs, and of no other.
create or replace function sluice.frees_all(p_source sluice.source, p_freed sluice.freed) returns boolean
language plpgsql as $$
begin
  if cardinality(p_freed.gates) = 1 then
    return /* guard:own-gate */ least(p_source.gate, p_source.stream_gate) = 0 and /* end */
      p_freed.gates[1] = p_source.gate + p_source.stream_gate;
  end if;
  -- guard: slots are re-used for their own totals only -> test/postgres/turns.test.ts: "slots of several totals are reused only if all of them were freed"
  return p_freed.gates_n[1] = all (p_freed.gates_n) /* guard:own-totals */ and p_freed.gates = array(
    select x from unnest(sluice.gates_of(p_source.gate) || p_source.stream_gate) x where x > 0 order by x) /* end */;
end $$;
