-- Deletes dead workers and moves every running task whose worker has no row: back to ready or gated with its slots of
-- lanes and its attempts, to suspect, or to done. That includes tasks that a dead worker's cut-off claim commits later.
-- Any number of processes may call it at once: rows that another reaper has locked are skipped.
-- workers: how many were deleted. tasks: how many were moved. poisoned: how many of them failed.
create or replace function sluice.reap(out workers int, out tasks int, out poisoned int)
language plpgsql set jit = off as $$
declare
  v_now timestamptz := sluice.clock();
  v_streams int[];
  v_ended bigint[];
  v_states sluice.state[];
  v_totals int[];
  v_released bigint[];
begin
  workers := sluice.reap_workers();
  with fate as materialized (
    select * from sluice.reap_running()
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes)
    select id, stream, rank, attempt /* guard:attempt */ - 1 /* end */, sluice.own_turn(id), lanes
    from fate where kind = 'release' and not suspect and task_gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes)
    select id, stream, task_gate, rank, attempt /* guard:attempt */ - 1 /* end */, sluice.own_turn(id), lanes
    from fate where kind = 'release' and not suspect and task_gate <> 0
  ), to_suspect as (
    insert into sluice.suspect (id, stream, attempt, lanes)
    select id, stream, attempt - 1, lanes from fate where kind = 'release' and suspect
  ), failures as (
    -- The worker has no row any more, so nothing tells its name.
    insert into sluice.attempt (id, attempt, started_at, failed_at, error)
    select id, attempt, started_at, v_now, sluice.worker_lost_error() from fate where kind = 'release'
  ), blocked as (
    insert into sluice.block (id, lane)
    select id, lanes[1] from fate where kind = 'fail' and lane_limits[1] = sluice.blocking_limit()
  ), history as (
    insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
    select id, sluice.state_after(kind), attempt, worker, started_at, v_now,
      case when kind = 'fail' then sluice.poisoned_error(times) else json_build_object('reason', reason) end
    from fate where kind in ('fail', 'cancel')
  ), credits as (
    insert into sluice.credit (gate, n)
    select x.gate, count(*)
    from fate
    cross join lateral unnest(fate.totals) x(gate)
    where x.gate <> 0
    group by x.gate
    returning gate
  ), frees as (
    insert into sluice.dirty (lane, limit_id, freed)
    select l, 0, count(*)
    from fate,
      unnest(case when kind = 'fail' and lane_limits[1] = sluice.blocking_limit() then lanes[2:] else lanes end) l
    where kind in ('fail', 'cancel')
    group by l
  )
  select count(*), count(*) filter (where kind = 'fail'), array_agg(distinct stream),
    array_agg(id order by id) filter (where kind in ('fail', 'cancel')),
    array_agg(sluice.state_after(kind) order by id) filter (where kind in ('fail', 'cancel')),
    (select array_agg(gate) from credits), array_agg(id) filter (where kind = 'release')
  into tasks, poisoned, v_streams, v_ended, v_states, v_totals, v_released
  from fate;
  if v_released is not null then perform sluice.trim_attempts(v_released); end if;
  if v_totals is not null then perform sluice.note_returned(v_totals); end if;
  if v_ended is not null then
    delete from sluice.stop where id = any (v_ended);
    delete from sluice.crash where id = any (v_ended);
    perform sluice.tell_awaited(array(select distinct id from sluice.awaited where id = any (v_ended)));
    if exists (select from sluice.workflow_run where finished_at is null) then
      perform sluice.workflow_ended_elsewhere(v_ended, v_states);
    end if;
  end if;
  perform sluice.ring(array[x], tasks) from unnest(v_streams) x;
end $$;
