-- Returns the names of these limits, for metrics.
create or replace function sluice.limit_names(p_limits int[]) returns table (id int, name text)
language sql stable as $$
  select l.id, l.name from sluice.limits l where l.id = any (p_limits)
$$;
