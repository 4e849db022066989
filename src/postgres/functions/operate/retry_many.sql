-- Moves failed and cancelled tasks out of history to their first lane, ready or gated. A task that still blocks its
-- order key keeps that slot. The error of a failure is kept as an attempt. Returns how many. The caller has made sure
-- that no run counts them as ended, and holds the locks of the runs they made, none of which is being cancelled.
create or replace function sluice.retry_many(p_ids bigint[]) returns int
language plpgsql /* settings: index plans */ as $$
declare
  v_ids bigint[];
  v_streams int[];
begin
  with gone as (
    delete from sluice.done where ctid = any (array(
      select x.tid
      from unnest(p_ids) u(id)
      cross join lateral (
        select d.ctid as tid from sluice.done d where d.id = u.id and d.state in ('failed', 'cancelled') limit 1) x))
    returning *
  ), failures as (
    insert into sluice.attempt (id, attempt, worker, started_at, failed_at, error)
    select g.id, g.attempt, (select w.name from sluice.worker w where w.id = g.worker), g.started_at, g.finished_at,
      g.outcome
    from gone g where g.state = 'failed'
  )
  select array_agg(id) into v_ids from gone;
  if v_ids is null then return 0; end if;
  perform sluice.trim_attempts(v_ids);
  delete from sluice.stop where id = any (v_ids);
  delete from sluice.crash where id = any (v_ids);
  with unblocked as (
    delete from sluice.block where id = any (v_ids) returning id
  ), back as materialized (
    select t.*, case when b.id is null then 0 else 1 end as held
    from unnest(v_ids) u(id)
    cross join lateral (select * from sluice.task where id = u.id limit 1) t
    left join unblocked b on b.id = u.id
  ), waits as (
    insert into sluice.waiting (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, 0, held, stream, gate, lanes,
      lane_limits
    from back where held < cardinality(lanes)
  ), notes as (
    insert into sluice.dirty (lane, limit_id)
    select lanes[held + 1], max(lane_limits[held + 1]) from back where held < cardinality(lanes) group by 1
  ), readies as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes)
    select id, stream, rank, 0, sluice.own_turn(id), lanes
    from back where held >= coalesce(cardinality(lanes), 0) and gate = 0
  ), gates as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes)
    select id, stream, gate, rank, 0, sluice.own_turn(id), lanes
    from back where held >= coalesce(cardinality(lanes), 0) and gate <> 0
  )
  select array_agg(distinct stream) into v_streams from back;
  perform sluice.ring(v_streams, cardinality(v_ids));
  if exists (select from sluice.workflow_run r where r.parent = any (v_ids) and r.state in ('failed', 'cancelled')) then
    perform sluice.workflow_map_again(v_ids);
  end if;
  return cardinality(v_ids);
end $$;
