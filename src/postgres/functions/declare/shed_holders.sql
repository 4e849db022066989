-- Moves up to p_max tasks that hold a slot of these lanes and do not run back to the first such lane, p_excess of each
-- lane, and returns how many. Holders by their last lane are found by index (shed_last), others between the row
-- addresses p_from and p_to. Skips rows that are locked.
create or replace function sluice.shed_holders(p_lanes bigint[], p_excess int[], p_max int, p_from tid, p_to tid)
returns int language plpgsql set jit = off as $$
declare
  v_n int;
begin
  with over as materialized (
    select * from unnest(p_lanes, p_excess) u(lane, excess)
  ), holder as (
    select h.source, h.tid, h.rank, h.id, h.attempt, o.lane, o.excess
    from over o cross join lateral sluice.shed_last(o.lane, least(o.excess, p_max)) h
    union all
    select 'ready', r.ctid, r.rank, r.id, r.attempt, o.lane, o.excess
    from sluice.ready r
    cross join lateral unnest(r.lanes[:cardinality(r.lanes) - 1]) l
    join over o on o.lane = l
    where r.ctid >= p_from and r.ctid < p_to and cardinality(r.lanes) > 1
    union all
    select 'gated', g.ctid, g.rank, g.id, g.attempt, o.lane, o.excess
    from sluice.gated g
    cross join lateral unnest(g.lanes[:cardinality(g.lanes) - 1]) l
    join over o on o.lane = l
    where g.ctid >= p_from and g.ctid < p_to and cardinality(g.lanes) > 1
  ), ranked as (
    select *, row_number() over (partition by lane order by rank desc, id desc) as k from holder
  ), chosen as materialized (
    select source, tid, id, attempt, array_agg(lane) as over from ranked
    where k <= excess
    group by source, tid, id, attempt
    limit p_max
  ), from_ready as (
    delete from sluice.ready where ctid = any (array(
      select ctid from sluice.ready
      where ctid = any (array(select tid from chosen where source = 'ready'))
      for update /* guard:locked */ skip locked /* end */))
    returning id, turn, late
  ), from_gated as (
    delete from sluice.gated where ctid = any (array(
      select ctid from sluice.gated
      where ctid = any (array(select tid from chosen where source = 'gated'))
      for update /* guard:locked */ skip locked /* end */))
    returning id, turn, late
  ), back as materialized (
    select t.*, c.attempt, g.turn, coalesce(g.late, 0) as late,
      (select min(array_position(t.lanes, l)) from unnest(c.over) l) as at
    from chosen c
    join (table from_ready union all table from_gated) g on g.id = c.id
    cross join lateral (select * from sluice.task where id = c.id limit 1) t
  ), waits as (
    insert into sluice.waiting (
      id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, late, turn)
    select id, lanes[at], sluice.lane_place(lanes[at], rank), rank, attempt, at - 1, stream, gate, lanes, lane_limits,
      late, turn
    from back
  ), notes as (
    insert into sluice.dirty (lane, limit_id, freed)
    select l, 0, count(*) from back b cross join lateral unnest(b.lanes[b.at:]) l group by l
  )
  select count(*) into v_n from back;
  return v_n;
end $$;
