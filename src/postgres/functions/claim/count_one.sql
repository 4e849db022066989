-- Counts what a claim of one source took, if the counter of its total is locked, or gives back what it did not use.
create or replace function sluice.count_one(p_plan sluice.sole_plan, p_freed sluice.freed, p_claimed int) returns void
language plpgsql as $$
declare v_own int := coalesce(p_freed.gates_n[1], 0);
begin
  if p_plan.locked is null then
    perform sluice.give_back(p_freed.gates, array_fill(v_own - p_claimed, array[cardinality(p_freed.gates)]));
    return;
  end if;
  if p_claimed <> v_own + p_plan.absorbed then
    update sluice.gate g set used = g.used + p_claimed - v_own - p_plan.absorbed,
      full_at = least(p_plan.full_until, sluice.clock())
    where g.id = p_plan.total;
  end if;
  -- guard: slots of one total that a step gives back are noted -> test/postgres/kinds.test.ts: "slots of one total that a step returns start tasks of types with many groups"
  if /* guard:total-returned */ p_claimed < v_own and p_freed.many /* end */ then
    perform sluice.note_returned(array[p_plan.total]);
  end if;
end $$;
