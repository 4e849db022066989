-- The level of windows of fan-outs (see lane_level).
create or replace function sluice.window_level() returns int language sql immutable parallel safe as $$
  select 2
$$;
