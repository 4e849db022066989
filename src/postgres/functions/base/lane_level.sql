-- Returns the level of a lane: order_level (1), window_level (2) or key_level (3). PostgreSQL inlines this and the
-- names of the levels, so that statements still match indexes that write the expression out (ready_holder).
create or replace function sluice.lane_level(p_lane bigint) returns bigint language sql immutable parallel safe as $$
  select p_lane >> 60
$$;
