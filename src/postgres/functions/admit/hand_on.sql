-- Moves the next tasks of locked lanes on, and counts. A snapshot later than the lock: every committed waiter is
-- visible. p_full: lanes whose slots were all out until now; their tasks are late. p_stuck: lanes with stuck kinds,
-- whose next tasks are p_open. Returns the lanes that the tasks want next, the streams of tasks with no lane left, and
-- the lanes with waiters that another transaction has locked (locked_out). One statement: its rows go from part to part
-- with their lists of lanes.
create or replace function sluice.hand_on(p_level int, p_lanes bigint[], p_returned int[], p_room int[],
  p_full bigint[], p_stuck bigint[], p_open tid[], out lanes bigint[], out limits int[], out streams int[],
  out locked_out bigint[], out locked_out_limits int[])
language plpgsql as $$
#variable_conflict use_column
begin
  with lane as (
    select * from unnest(p_lanes, p_returned, p_room) u(id, returned, room)
  ), in_line as (
    select w.tid, l.id as lane from lane l cross join lateral (
      select ctid as tid from sluice.waiting where lane = l.id
      order by place, id limit least(l.room, sluice.moves_max()) for update skip locked) w
    where l.id <> all (p_stuck)
  ), open as (
    select ctid as tid, lane from sluice.waiting where ctid = any (p_open) for update skip locked
  ), candidate as (select * from in_line union all select * from open
  ), moved as (
    delete from sluice.waiting x where ctid = any (array(select tid from candidate))
    returning x.id, x.rank, x.attempt, x.held, x.stream, x.gate, x.lanes, x.lane_limits, x.turn as had,
      case when x.lane = any (p_full) then (x.late | (1 << x.held))::smallint else x.late end as late
  ), passed as (
    -- guard: keys of a limit take turns -> test/postgres/turns.test.ts: "a new key waits for at most one round of the others: %s"
    -- guard: a task that gave its slots back has its turn again -> test/postgres/yield.test.ts: "a task that released its key slot is not overtaken forever at a busy total"
    select *, coalesce(/* guard:turn-kept */ had /* end */,
      /* guard:turns */ sluice.next_turn((select last_value from sluice.task_id)) /* end */) as turn
    from (select * from moved where held + 1 = cardinality(lanes) order by id) m
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes, late)
    select id, stream, rank, attempt, turn, lanes, nullif(late, 0) from passed where gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes, late)
    select id, stream, gate, rank, attempt, turn, lanes, nullif(late, 0) from passed where gate <> 0
  ), to_waiting as (
    insert into sluice.waiting (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, late, turn)
    select id, lanes[held + 2], sluice.lane_place(lanes[held + 2], rank), rank, attempt, held + 1, stream, gate,
      lanes, lane_limits, late, had from moved where held + 1 < cardinality(lanes)
  ), onward as (
    select lanes[held + 2] as lane, max(lane_limits[held + 2]) as limit_id from moved
    where held + 1 < cardinality(lanes) group by 1
  ), tally as (
    select l.id, l.room, count(n.lane)::int as taken, count(n.lane)::int - l.returned as change
    from lane l left join candidate n on n.lane = l.id group by l.id, l.room, l.returned
  ), after as (
    select t.*, r.tid, r.used + t.change as used, r.limit_id from tally t
    cross join lateral (select ctid as tid, used, limit_id from sluice.lane where id = t.id limit 1) r
    where t.change <> 0 or t.taken < t.room
  ), left_over as materialized (
    -- Seen but not taken: more than we move at once, or (locked_out) locked by a transaction that may yet abort.
    select a.*, a.taken < least(a.room, sluice.moves_max()) as locked_out, (a.taken < a.room or a.used <= 0)
      and (
        select count(*) from (select from sluice.waiting w where w.lane = a.id limit a.taken + 1) x) > a.taken as more
    from after a
  ), again as (
    insert into sluice.dirty (lane, limit_id)
    select id, limit_id from left_over where more and taken < room and not locked_out
  ), behind as (
    -- Two limits of one level: lanes at or below this level have been handled, so the next claim admits.
    insert into sluice.dirty (lane, limit_id)
    select lane, limit_id from onward where /* guard:turn-over */ sluice.lane_level(lane) <= p_level /* end */
  ), emptied as (
    delete from sluice.lane where ctid = any (array(select tid from left_over where used <= 0 and not more))
  ), updated as (
    update sluice.lane l set used = o.used from left_over o
    where l.ctid = o.tid and o.change <> 0 and (o.used > 0 or o.more)
  )
  select (select array_agg(lane) from onward), (select array_agg(limit_id) from onward),
    (select array_agg(distinct stream) from passed),
    array_agg(id) filter (where more and locked_out), array_agg(limit_id) filter (where more and locked_out)
  into lanes, limits, streams, locked_out, locked_out_limits from left_over;
end $$;
