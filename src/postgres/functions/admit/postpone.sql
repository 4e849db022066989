-- These lanes have room, and waiters that open transactions have locked, which may yet abort. Each lane gets a row for
-- every such transaction, whose id is the xmax of the locked rows; of an order key only the head counts. The caller
-- holds the lanes' locks. A transaction that has deleted a row still visible here looks at the lane later, so a row
-- that is there already is as good as a new one, and no transaction waits for another.
create or replace function sluice.postpone(p_lanes bigint[], p_limits int[]) returns void
language plpgsql as $$
begin
  insert into /* guard:postponed */ sluice.postponed /* end */ (blocker, lane, limit_id)
  select distinct coalesce(w.blocker, 0), l.lane, l.limit_id from unnest(p_lanes, p_limits) l(lane, limit_id)
  left join lateral (
    select case when k.xmax <> 0 or sluice.lane_level(l.lane) <> sluice.key_level() then k.xmax else (
      -- guard: a key waits for the kinds that are stuck there -> test/postgres/notes.test.ts: "a key is checked again when one of its stuck kinds can run"
      select -s.n from sluice.stuck s where s.stream = k.stream and s.gate = any (array[0, k.gate])
        and (s.lane = 0 or s.lane = any (k.later))
      order by s.n limit /* guard:stuck-kinds */ 1 /* end */) end as blocker
    from (
      select distinct x.xmax::text::bigint as xmax, x.stream, x.gate, x.lanes[x.held + 2:] as later from (
        select w.xmax, w.stream, w.gate, w.lanes, w.held from sluice.waiting w where w.lane = l.lane
        order by w.place, w.id
        limit case when sluice.lane_level(l.lane) = sluice.order_level() then 1 else 1000 end) x) k) w on true
  where not exists (select from sluice.postponed p where p.blocker = coalesce(w.blocker, 0) and p.lane = l.lane);
end $$;
