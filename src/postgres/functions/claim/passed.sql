-- What a task has passed, for metrics; see the type `claimed`. p_gates: ',' and each of its totals, with how long ago
-- it was full. Numbers as text, because an array costs twice as much to make and to send.
create or replace function sluice.passed(p_attempt smallint, p_due timestamptz, p_now timestamptz, p_gates text,
  p_lanes bigint[], p_late smallint, p_lane_limits int[]) returns text language sql stable as $$
  select case when p_attempt = 0 then sluice.ms_between(p_due, p_now) else -1 end::text
    || case when p_lanes is null then p_gates
      else coalesce(p_gates, '') || ',0,' || coalesce(p_late, 0)::text || ',' || array_to_string(p_lane_limits, ',') end
$$;
