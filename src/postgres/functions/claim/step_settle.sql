-- Settles what succeeded, for step. Returns what that freed, and what the claim after it must know.
create or replace function sluice.step_settle(p_ids bigint[], p_claims bigint[], p_results text, p_keep boolean,
  p_flow boolean) returns sluice.freed language plpgsql as $$
declare
  v_freed sluice.freed;
  v_noted boolean := exists (select from sluice.awaited) or exists (select from sluice.stop)
    or exists (select from sluice.crash);
begin
  select s.settled, cardinality(p_ids) - coalesce(cardinality(s.settled), 0), s.lanes, s.gates, s.gates_n into v_freed
  from sluice.settle_succeeded(p_ids, p_claims, p_results, p_keep, v_noted or p_flow and not p_keep) s;
  if v_freed.gates is not null then
    select exists (select from sluice.gate g where g.kept_for is not null),
      exists (select from sluice.stream s where s.many)
    into v_freed.kept, v_freed.many;
  end if;
  return v_freed;
end $$;
