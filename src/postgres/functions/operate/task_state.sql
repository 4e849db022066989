-- The state of each task. It is one statement with one snapshot, so a task is found in exactly one place.
create or replace view sluice.task_state as
  select t.id, s.type, s.queue, -t.rank as priority, t.created_at, t.attempts_max, t.input,
    t.lanes, t.lane_limits, t.lane_keys, t.gate,
    x.state, x.attempt, x.run_at, x.worker, x.started_at, x.finished_at, x.outcome
  from sluice.task t
  join sluice.stream s on s.id = t.stream
  cross join lateral (
    select 'scheduled' as state, attempt, run_at, null::bigint as worker, null::timestamptz as started_at,
      null::timestamptz as finished_at, null::json as outcome
    from sluice.scheduled where id = t.id
    union all
    select 'waiting', w.attempt, null, null, null, null, null
    from unnest(t.lanes) l(id)
    cross join lateral (
      select attempt from sluice.waiting w
      where w.lane = l.id and w.place = sluice.lane_place(l.id, t.rank) and w.id = t.id
      limit 1) w
    union all
    select 'ready', r.attempt, null, null, null, null, null
    from sluice.ready r
    where t.gate = 0 and t.lanes is null
      and r.stream = t.stream and r.rank = t.rank and r.turn = sluice.own_turn(t.id)
    union all
    select 'ready', r.attempt, null, null, null, null, null
    from sluice.ready r
    where t.gate = 0 and t.lanes is not null and r.lanes is not null and r.id = t.id
    union all
    select 'waiting', g.attempt, null, null, null, null, null
    from sluice.gated g
    where t.gate <> 0 and t.lanes is null
      and g.stream = t.stream and g.gate = t.gate and g.rank = t.rank and g.turn = sluice.own_turn(t.id)
    union all
    select 'waiting', g.attempt, null, null, null, null, null
    from sluice.gated g
    where t.gate <> 0 and t.lanes is not null and g.lanes is not null and g.id = t.id
    union all
    select 'waiting', attempt, null, null, null, null, null from sluice.parked where id = t.id
    union all
    select 'waiting', attempt, null, null, null, null, null from sluice.parent where id = t.id
    union all
    select 'ready', attempt, null, null, null, null, null from sluice.suspect where id = t.id
    union all
    select 'running', attempt, null, worker, started_at, null, null from sluice.running where id = t.id
    union all
    select state::text,
      attempt, null, worker, started_at, finished_at, outcome
    from sluice.done where id = t.id
  ) x;
