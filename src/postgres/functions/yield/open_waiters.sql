-- Returns the rows of the first p_n tasks that wait at a key and are not stuck, or that could run again although the
-- keeper has not noticed yet. Stuck tasks keep their place. If the first 1,000 are mostly stuck, the others are
-- looked up by kind.
create or replace function sluice.open_waiters(p_lane bigint, p_n int) returns setof tid
language plpgsql stable /* settings: index plans */ as $$
declare
  v_found tid[];
begin
  with line as materialized (
    select w.ctid as tid, w.stream, w.gate, w.lanes[w.held + 2:] as later, row_number() over () as n
    from (
      select x.ctid, x.stream, x.gate, x.lanes, x.held from sluice.waiting x
      where x.lane = p_lane
      order by x.place, x.id
      limit 1000) w
  ), kind as materialized (
    -- guard: what is stuck is passed over -> test/postgres/yield.test.ts: "tasks that wait at a full total release their key slots to others, and keep their place"
    select k.stream, k.gate, sluice.is_stuck(k.stream, k.gate) as stuck
    from (select distinct stream, gate from line) k
  )
  select array(
    select l.tid
    from line l
    join kind k on k.stream = l.stream and k.gate = l.gate
    where not k.stuck and not sluice.needs_full_key(l.stream, l.gate, l.later)
    order by l.n
    limit p_n) into v_found;
  if cardinality(v_found) >= p_n or not exists (select from sluice.waiting x where x.lane = p_lane offset 1000) then
    return query select unnest(v_found);
    return;
  end if;
  return query
  select w.tid
  from sluice.kinds_at(p_lane) k
  cross join lateral (
    select x.ctid as tid, x.place, x.id from sluice.waiting x
    where x.lane = p_lane and x.lane >= sluice.first_key()
      and x.stream = k.stream and x.gate = k.gate and coalesce(x.lanes[x.held + 2], 0) = k.next
    order by x.place, x.id
    limit p_n) w
  where not sluice.is_stuck(k.stream, k.gate) and not sluice.needs_full_key(k.stream, k.gate, k.lanes[k.held + 2:])
  order by w.place, w.id
  limit p_n;
end $$;
