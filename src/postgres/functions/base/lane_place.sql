-- Returns the place of a task in the line of a lane: 0 for order keys and windows, where priority is ignored, else the
-- rank.
create or replace function sluice.lane_place(p_lane bigint, p_rank smallint) returns smallint
language sql immutable parallel safe as $$
  select case when p_lane >> 60 in (1, 2) then /* guard:rank */ 0::smallint /* end */ else p_rank end
$$;
