-- What a claim reports of a task, as numbers split by commas; see the type `claimed`. p_gates: as in passed.
create or replace function sluice.claim_report(p_meters boolean, p_gates text, p_is_head boolean, p_attempt smallint,
  p_due timestamptz, p_now timestamptz, p_lanes bigint[], p_late smallint, p_lane_limits int[])
returns text language sql stable as $$
  select case
    when p_gates is not null
        or p_meters and sluice.lane_level(p_lanes[cardinality(p_lanes)]) = sluice.key_level()
      then sluice.passed(p_attempt, p_due, p_now, p_gates, p_lanes, p_late, p_lane_limits)
    when p_is_head and p_attempt = 0 then sluice.ms_between(p_due, p_now)::text end
$$;
