-- The level of keys of limits, the highest (see lane_level).
create or replace function sluice.key_level() returns int language sql immutable parallel safe as $$
  select 3
$$;
