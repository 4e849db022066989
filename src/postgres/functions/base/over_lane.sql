-- Returns the index of the first of a task's lanes, order keys aside, that holds more than its number allows now.
-- A lane above its number admits nothing, so it only shrinks: an unlocked read is good enough.
create or replace function sluice.over_lane(p_lanes bigint[]) returns int language plpgsql stable as $$
begin
  return (
    select min(u.i)::int
    from unnest(p_lanes) with ordinality u(lane, i)
    join sluice.lane n on n.id = u.lane
    where sluice.lane_level(u.lane) > sluice.order_level()
      and n.used > coalesce(
        n.cap,
        (select coalesce(l.per_key_override, l.per_key_declared) from sluice.limits l where l.id = n.limit_id),
        sluice.no_limit()));
end $$;
