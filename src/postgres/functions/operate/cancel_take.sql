-- Deletes tasks that are not running from their state tables, skipping rows that are locked. Returns them with the
-- lanes of which they held slots. lane, limit_id: the lane that it waited at, if it did.
create or replace function sluice.cancel_take(p_ids bigint[])
returns table (id bigint, attempt smallint, slots bigint[], lane bigint, limit_id int)
language plpgsql /* settings: index plans */ as $$
#variable_conflict use_column
begin
  return query
  with target as materialized (
    select t.*
    from (select distinct unnest(p_ids) as id) u
    cross join lateral (
      select k.id, k.stream, k.rank, k.gate, k.lanes from sluice.task k where k.id = u.id limit 1) t
  ), from_scheduled as (
    delete from sluice.scheduled where ctid = any (array(
      select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.scheduled y
        where y.id = t.id for update /* guard:locked */ skip locked /* end */) x))
    returning scheduled.id, attempt, held::int
  ), from_waiting as (
    delete from sluice.waiting where ctid = any (array(
      select x.tid from target t cross join lateral unnest(t.lanes) l cross join lateral (
        select y.ctid as tid from sluice.waiting y
        where y.lane = l and y.place = sluice.lane_place(l, t.rank) and y.id = t.id
        for update /* guard:locked */ skip locked /* end */) x))
    returning waiting.id, attempt, held::int, waiting.lane, lane_limits[held + 1] as limit_id
  ), from_ready as (
    delete from sluice.ready where ctid = any (array(
      select y.ctid from sluice.ready y
      where y.ctid = any (array(
        select sluice.ready_at(t.id, t.stream, t.rank, t.lanes) from target t where t.gate = 0))
      for update /* guard:locked */ skip locked /* end */))
    returning ready.id, attempt, coalesce(cardinality(lanes), 0) as held
  ), from_gated as (
    delete from sluice.gated where ctid = any (array(
      select y.ctid from sluice.gated y
      where y.ctid = any (array(
        select sluice.gated_at(t.id, t.stream, t.gate, t.rank, t.lanes) from target t where t.gate <> 0))
      for update /* guard:locked */ skip locked /* end */))
    returning gated.id, attempt, coalesce(cardinality(lanes), 0) as held
  ), from_suspect as (
    delete from sluice.suspect where ctid = any (array(
      select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.suspect y
        where y.id = t.id for update /* guard:locked */ skip locked /* end */) x))
    returning suspect.id, attempt, coalesce(cardinality(lanes), 0) as held
  ), from_parked as (
    delete from sluice.parked where ctid = any (array(
      select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.parked y
        where y.id = t.id for update /* guard:locked */ skip locked /* end */) x))
    returning parked.id, attempt, held::int
  ), from_parent as (
    delete from sluice.parent where ctid = any (array(
      select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.parent y
        where y.id = t.id for update /* guard:locked */ skip locked /* end */) x))
    returning parent.id, attempt, held::int
  ), gone as (
    select x.*, null::bigint as lane, null::int as limit_id
    from (
      table from_scheduled union all table from_ready union all table from_gated union all table from_suspect
      union all table from_parked union all table from_parent
    ) x
    union all select * from from_waiting
  )
  select gone.id, gone.attempt, t.lanes[1:/* guard:held */ gone.held /* end */], gone.lane, gone.limit_id
  from gone join target t on t.id = gone.id;
end $$;
