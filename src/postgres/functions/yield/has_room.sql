-- Returns whether a key has a free slot. Reads without locks.
create or replace function sluice.has_room(p_lane bigint) returns boolean language plpgsql stable as $$
begin
  return not exists (select from sluice.lane n where n.id = p_lane and n.used >= sluice.cap_of(n.cap, n.limit_id));
end $$;
