-- Returns whether one of these keys is full and a task of another kind that waits for it could run now. p_waits_at: the
-- key that the holder waits for, 0 for none.
create or replace function sluice.is_wanted(p_lanes bigint[], p_stream int, p_gate int, p_waits_at bigint)
returns boolean language plpgsql stable as $$
begin
  return exists (
    select
    from unnest(p_lanes) l(id)
    cross join lateral (
      select n.used, sluice.cap_of(n.cap, n.limit_id) as cap from sluice.lane n where n.id = l.id limit 1) n
    cross join lateral sluice.kinds_at(l.id) k
    where l.id >= sluice.first_key()
      and n.used >= n.cap
      and (k.stream, k.gate, k.next) <> (p_stream, p_gate, p_waits_at)
      and not exists (select from unnest(k.lanes[k.held + 2:]) m(id) where not sluice.has_room(m.id))
      and sluice.is_open(k.stream, k.gate, true));
end $$;
