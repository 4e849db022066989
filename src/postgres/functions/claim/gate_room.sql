-- Slots that a gate could give: an unlocked read, a hint. The truth is read under the counter's lock. A slot that is
-- kept for a task counts only for that task, p_head. (plpgsql, like all that a step calls: its plan is kept, whereas a
-- SQL function that cannot be inlined is planned again by every statement.)
create or replace function sluice.gate_room(p_gate int, p_own_gates int[], p_own_n int[], p_head bigint default null)
returns int language plpgsql stable as $$
begin
  if p_gate < 0 then
    return (select coalesce(min(sluice.gate_room(x, p_own_gates, p_own_n, p_head)), sluice.no_limit())
      from unnest(sluice.gates_of(p_gate)) x);
  end if;
  return coalesce((
    select least(sluice.no_limit(), /* guard:cap */ g.cap::bigint - g.used /* end */
      + coalesce((select sum(c.n) from sluice.credit c where c.gate = p_gate), 0)
      + coalesce((select sum(o.n) from unnest(p_own_gates, p_own_n) o(gate, n) where o.gate = p_gate), 0)
      -- guard: a kept slot is for one task -> test/postgres/kept.test.ts: "a freed slot is kept for the task that is first at all its totals"
      /* guard:kept */ - (g.kept_for is not null and g.kept_for is distinct from p_head)::int /* end */)::int
    from sluice.gate g where g.id = p_gate), /* guard:no-counter */ sluice.no_limit() /* end */);
end $$;
