-- Returns the place of a task in the line of a lane: 0 for order keys and windows, where priority is ignored, else the
-- rank.
create or replace function sluice.lane_place(p_lane bigint, p_rank smallint) returns smallint
language sql immutable parallel safe as $$
  select case
    when sluice.lane_level(p_lane) in (sluice.order_level(), sluice.window_level())
    then /* guard:rank */ 0::smallint /* end */
    else p_rank
  end
$$;
