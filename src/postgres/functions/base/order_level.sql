-- The level of order keys, the lowest: a task passes its order key first (see lane_level).
create or replace function sluice.order_level() returns int language sql immutable parallel safe as $$
  select 1
$$;
