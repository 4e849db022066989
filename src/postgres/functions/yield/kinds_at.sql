-- Returns the kinds that wait at a key, at most 256, with the first task of each. Kinds are told apart also by the key
-- they need next (next, 0 for none).
create or replace function sluice.kinds_at(p_lane bigint)
returns table (stream int, gate int, next bigint, id bigint, held smallint, lanes bigint[])
language plpgsql stable /* settings: index plans */ as $$
begin
  return query
  with recursive kind as (
    (select w.stream, w.gate, coalesce(w.lanes[w.held + 2], 0) as next, w.id, w.held, w.lanes, 1 as n
      from sluice.waiting w
      where w.lane = p_lane and w.lane >= sluice.first_key()
      order by w.stream, w.gate, coalesce(w.lanes[w.held + 2], 0), w.place, w.id
      limit 1)
    union all
    select x.stream, x.gate, x.next, x.id, x.held, x.lanes, k.n + 1
    from kind k
    cross join lateral (
      select w.stream, w.gate, coalesce(w.lanes[w.held + 2], 0) as next, w.id, w.held, w.lanes
      from sluice.waiting w
      where w.lane = p_lane and w.lane >= sluice.first_key()
        and (w.stream, w.gate, coalesce(w.lanes[w.held + 2], 0)) > (k.stream, k.gate, k.next)
      order by w.stream, w.gate, coalesce(w.lanes[w.held + 2], 0), w.place, w.id
      limit 1) x
    where k.n < 256
  )
  select k.stream, k.gate, k.next, k.id, k.held, k.lanes from kind k;
end $$;
