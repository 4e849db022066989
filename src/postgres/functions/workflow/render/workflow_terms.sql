-- How tasks of a stream are made here. in_code: only code can tell their order or their keys, and the rest does not
-- count.
create or replace function sluice.workflow_terms(
  p_stream int, out in_code boolean, out rank smallint, out attempts smallint, out gate int
) language plpgsql as $$
declare v sluice.contract; v_totals int[]; v_keyed boolean;
begin
  select c.* into v from sluice.stream s join sluice.contract c on c.type = s.type where s.id = p_stream;
  in_code := not found or v.limit_ids is null or v.ordered;
  rank := -v.priority;
  attempts := v.attempts_max;
  gate := 0;
  if in_code or v.limit_ids = '{}' then
    return;
  end if;
  select array_agg(l.id order by l.id) filter (where l.total_declared is not null),
    bool_or(l.per_key_declared is not null)
  into v_totals, v_keyed
  from sluice.limits l where l.id = any (v.limit_ids);
  in_code := coalesce(v_keyed, false);
  if not in_code then
    gate := sluice.gate_of(v_totals);
  end if;
end $$;
