-- Returns the kinds in `gated`, of streams whose tasks may hold slots of keys, that cannot start a task now. Of each
-- stream up to 256 gates in both directions from p_start.
create or replace function sluice.shut_kinds(p_start int) returns table (stream int, gate int)
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
  return query
  select l.id, k.gate
  from sluice.stream l
  cross join (values (p_start, sluice.int_max()), (sluice.int_min(), p_start - 1)) part(low, high)
  cross join lateral (
    with recursive kind as (
      -- If no task at a total holds a slot of a key, as with plain groups, there is nothing to give back.
      (select g.gate, 1 as n
        from sluice.gated g
        where g.stream = l.id and g.gate >= part.low and g.gate <= part.high
          and exists (
            select from sluice.gated h
            where sluice.lane_level(h.lanes[cardinality(h.lanes)]) > sluice.order_level())
        order by g.gate
        limit 1)
      union all
      select x.gate, p.n + 1
      from kind p
      cross join lateral (
        select g.gate from sluice.gated g
        where g.stream = l.id and g.gate > p.gate and g.gate <= part.high
        order by g.gate
        limit 1) x
      where p.n < 256
    )
    select kind.gate from kind) k
  where l.laned and not sluice.is_open(l.id, k.gate, true);
end $$;
