-- The totals that a claim of one source has passed, for metrics: p_gates of the function `passed`. Slots that the step
-- freed itself do not count: without them the total may have been full.
create or replace function sluice.passed_totals(p_plan sluice.sole_plan, p_freed sluice.freed, p_look timestamptz)
returns text
language plpgsql as $$
begin
  if p_plan.locked then return ',' || p_plan.total || ',' || sluice.full_ms(p_plan.full_until, p_look); end if;
  return (
    select string_agg(',' || x || ',' || case
      when sluice.gate_room(x, p_freed.gates, p_freed.gates_n) <= p_plan.take then -1
      else sluice.full_ms(sluice.full_until(x), p_look) end, '')
    from unnest(p_freed.gates) x);
end $$;
