-- The limit id of an order key in lane_limits and lane.
create or replace function sluice.order_limit() returns int language sql immutable parallel safe as $$
  select 0
$$;
