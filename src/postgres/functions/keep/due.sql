-- The keeper's duties: what must happen without a call of a client. Any process may call these functions at any time.

-- Moves scheduled tasks that are due to their next lane, or to ready or gated. A task that was asked to stop ends as
-- cancelled instead. Skips rows that are locked. moved: how many. next_ms: how long until the next one is due, null if
-- there is none.
create or replace function sluice.due(p_max int, out moved int, out next_ms bigint)
language plpgsql /* settings: index plans */ as $$
declare
  v_now timestamptz := sluice.clock();
  v_streams int[];
  v_stopped bigint[];
begin
  with gone as (
    delete from sluice.scheduled where ctid = any (array(
      select ctid from sluice.scheduled where run_at <= v_now
      order by run_at, id limit p_max for update /* guard:locked */ skip locked /* end */))
    returning *
  ), fate as materialized (
    select g.id, g.attempt, g.held, t.stream, t.rank, t.gate, t.lanes, t.lane_limits,
      /* guard:stop */ exists (select from sluice.stop z where z.id = g.id) /* end */ as stopped
    from gone g cross join lateral (select * from sluice.task where id = g.id limit 1) t
  ), history as (
    insert into sluice.done (id, state, attempt, finished_at, outcome)
    select id, 'cancelled', attempt, v_now,
      json_build_object('reason', (select s.reason from sluice.stop s where s.id = fate.id limit 1))
    from fate where stopped
  ), frees as (
    insert into sluice.dirty (lane, limit_id, freed)
    select l, 0, count(*) from fate, unnest(lanes[1:held]) l where stopped group by l
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes)
    select id, stream, rank, attempt, sluice.own_turn(id), lanes from fate
    where not stopped and held >= coalesce(cardinality(lanes), 0) and gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes)
    select id, stream, gate, rank, attempt, sluice.own_turn(id), lanes from fate
    where not stopped and held >= coalesce(cardinality(lanes), 0) and gate <> 0
  ), to_wait as (
    insert into sluice.waiting (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, attempt, held, stream, gate, lanes,
      lane_limits
    from fate where not stopped and held < cardinality(lanes)
  ), joins as (
    insert into sluice.dirty (lane, limit_id)
    select lanes[held + 1], max(lane_limits[held + 1]) from fate
    where not stopped and held < cardinality(lanes) group by 1
  )
  select count(*), array_agg(distinct stream), array_agg(id) filter (where stopped)
  into moved, v_streams, v_stopped
  from fate;
  if v_stopped is not null then
    delete from sluice.stop where id = any (v_stopped);
    perform sluice.tell_awaited(array(select distinct id from sluice.awaited where id = any (v_stopped)));
    if exists (select from sluice.workflow_active) then
      perform sluice.workflow_ended_elsewhere(
        v_stopped, array_fill('cancelled'::sluice.state, array[cardinality(v_stopped)]));
    end if;
  end if;
  if v_streams is not null and exists (select from sluice.worker where asleep) then
    perform sluice.ring(array[x], moved) from unnest(v_streams) x;
  end if;
  next_ms := (
    select greatest(0, ceil(extract(epoch from run_at - v_now) * 1000)) from sluice.scheduled
    where run_at > v_now order by run_at limit 1);
end $$;
