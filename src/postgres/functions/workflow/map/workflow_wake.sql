-- Wakes tasks that sleep until their children are over: they join their next lane, or are ready. Takes their rows with
-- SKIP LOCKED, and rings for them.
create or replace function sluice.workflow_wake(p_ids bigint[]) returns void
language plpgsql /* settings: index plans */ as $$
declare v_streams int[]; v_n int;
begin
  with gone as (
    delete from sluice.parent
    where ctid = any (array(
      select x.tid
      from unnest(p_ids) u(id)
      cross join lateral (
        select p.ctid as tid from sluice.parent p where p.id = u.id for update skip locked
      ) x))
    returning *
  ), back as materialized (
    select g.id, g.attempt, g.held, t.stream, t.rank, t.gate, t.lanes, t.lane_limits
    from gone g
    cross join lateral (select * from sluice.task where id = g.id limit 1) t
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes)
    select id, stream, rank, attempt, sluice.own_turn(id), lanes
    from back where held >= coalesce(cardinality(lanes), 0) and gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes)
    select id, stream, gate, rank, attempt, sluice.own_turn(id), lanes
    from back where held >= coalesce(cardinality(lanes), 0) and gate <> 0
  ), to_wait as (
    insert into sluice.waiting (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, attempt, held, stream, gate, lanes,
      lane_limits
    from back where held < cardinality(lanes)
  ), joins as (
    insert into sluice.dirty (lane, limit_id)
    select lanes[held + 1], max(lane_limits[held + 1]) from back where held < cardinality(lanes) group by 1
  )
  select count(*), array_agg(distinct stream) into v_n, v_streams from back;
  perform sluice.workflow_ring(v_streams, v_n);
end $$;
