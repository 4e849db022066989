-- Counts the limits, up to p_max.
create or replace function sluice.limit_count(p_max int) returns int language sql stable as $$
  select count(*)::int from (select from sluice.limits limit p_max) x
$$;
