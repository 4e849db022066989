-- Cancel, retry, look.

-- Where a task stands in ready: without lanes by its place, else by the index of those that have some.
create function sluice.ready_at(p_id bigint, p_stream int, p_rank smallint, p_lanes bigint[]) returns tid language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  if p_lanes is not null then return (select r.ctid from sluice.ready r where r.id = p_id and r.lanes is not null limit 1); end if;
  return (select r.ctid from sluice.ready r where r.stream = p_stream and r.rank = p_rank and r.turn = sluice.own_turn(p_id) limit 1);
end $$;

create function sluice.gated_at(p_id bigint, p_stream int, p_gate int, p_rank smallint, p_lanes bigint[]) returns tid language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off as $$
begin
  if p_lanes is not null then return (select g.ctid from sluice.gated g where g.id = p_id and g.lanes is not null limit 1); end if;
  return (select g.ctid from sluice.gated g where g.stream = p_stream and g.gate = p_gate and g.rank = p_rank and g.turn = sluice.own_turn(p_id) limit 1);
end $$;

-- Append-only as far as lanes go, so it may live in a user's transaction. Per id: 'cancelled',
-- 'asked' (it runs; its worker learns of it with its next heartbeat, and is notified to beat now), 'over', 'unknown', or 'moving'
-- (between two states just now: ask again). p_notes: leave notes to the runs that the tasks belong to; whoever
-- counts them himself does not.
create function sluice.cancel(p_ids bigint[], p_reason text default null, p_notes boolean default true) returns table (id bigint, answer text)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare v_left bigint[] := p_ids; v_gone bigint[] := '{}'; v_asked bigint[] := '{}'; v_now timestamptz := sluice.clock(); v_round bigint[]; v_round_asked bigint[];
  v_workers bigint[] := '{}'; v_round_workers bigint[];
begin
  for v_try in 1..3 loop
    with target as materialized (
      select t.* from (select distinct unnest(v_left) as id) u
      cross join lateral (select k.id, k.stream, k.rank, k.gate, k.lanes from sluice.task k where k.id = u.id limit 1) t
    ), s as (
      delete from sluice.scheduled where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.scheduled y where y.id = t.id for update skip locked) x)) returning scheduled.id, attempt, held::int
    ), w as (
      delete from sluice.wait where ctid = any (array(select x.tid from target t cross join lateral unnest(t.lanes) l cross join lateral (
        select y.ctid as tid from sluice.wait y where y.lane = l and y.place = sluice.lane_place(l, t.rank) and y.id = t.id for update skip locked) x))
      returning wait.id, attempt, held::int, wait.lane, lane_limits[held + 1] as limit_id
    ), r as (
      delete from sluice.ready where ctid = any (array(select y.ctid from sluice.ready y where y.ctid = any (array(
        select sluice.ready_at(t.id, t.stream, t.rank, t.lanes) from target t where t.gate = 0)) for update skip locked))
      returning ready.id, attempt, coalesce(cardinality(lanes), 0) as held
    ), g as (
      delete from sluice.gated where ctid = any (array(select y.ctid from sluice.gated y where y.ctid = any (array(
        select sluice.gated_at(t.id, t.stream, t.gate, t.rank, t.lanes) from target t where t.gate <> 0)) for update skip locked))
      returning gated.id, attempt, coalesce(cardinality(lanes), 0) as held
    ), p as (
      delete from sluice.suspect where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.suspect y where y.id = t.id for update skip locked) x))
      returning suspect.id, attempt, coalesce(cardinality(lanes), 0) as held
    ), k as (
      delete from sluice.park where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.park y where y.id = t.id for update skip locked) x)) returning park.id, attempt, held::int
    ), c as (
      delete from sluice.parent where ctid = any (array(select x.tid from target t cross join lateral (
        select y.ctid as tid from sluice.parent y where y.id = t.id for update skip locked) x)) returning parent.id, attempt, held::int
    ), gone as materialized (
      select * from k union all select * from c union all select * from s union all select id, attempt, held from w union all select * from r union all select * from g union all select * from p
    ), history as (
      insert into sluice.done (id, state, attempt, finished_at, outcome)
      select id, 'c', attempt, v_now, json_build_object('reason', p_reason) from gone
    ), frees as (
      insert into sluice.dirty (lane, limit_id, freed) select l, 0, count(*) from gone join target t on t.id = gone.id
      cross join lateral unnest(t.lanes[1:gone.held]) l group by l
    ), stood as (
      -- A slot that came free while we had the waiter locked was handed to nobody: look again once we have committed.
      -- Not at windows: items are cancelled by the thousand, and the end of their node leaves a note.
      -- guard: a committed cancel leaves a note -> test/postgres/notes.test.ts: "the commit of a cancel lets the next claim start the task behind it"
      insert into sluice.dirty (lane, limit_id) select lane, max(limit_id) from w where limit_id <> -2 group by lane
    ), running as materialized (
      select y.id, y.worker from target t cross join lateral (select k.id, k.worker from sluice.run k where k.id = t.id limit 1) y
    ), stops as (
      insert into sluice.stop (id, reason) select id, p_reason from running r where not exists (select from sluice.stop s where s.id = r.id)
      returning stop.id
    )
    select coalesce((select array_agg(gone.id) from gone), '{}'), coalesce((select array_agg(running.id) from running), '{}'),
      array(select distinct r.worker from stops s join running r on r.id = s.id)
    into v_round, v_round_asked, v_round_workers;
    v_gone := v_gone || v_round; v_asked := v_asked || v_round_asked; v_workers := v_workers || v_round_workers;
    -- Those that are over, or never were, are not between two states.
    v_left := array(select u.id from (select unnest(p_ids) except select unnest(v_gone) except select unnest(v_asked)) u(id)
      cross join lateral (select from sluice.task k where k.id = u.id limit 1) t left join lateral (select true as ended from sluice.done k where k.id = u.id limit 1) d on true
      where d.ended is null);
    exit when v_left = '{}';
    if v_try = 2 then perform pg_sleep(0.002); end if;
  end loop;
  perform sluice.tell_awaited(array(select distinct a.id from sluice.awaited a where a.id = any (v_gone)));
  -- Once per worker, however many of its tasks, and only by the call that asked first: what waits for a task to stop
  -- asks again and again. In a caller's transaction they are sent at its commit.
  perform pg_notify('sluice', 'stop:' || w.id) from (select distinct unnest(v_workers) as id) w;
  if p_notes and v_gone <> '{}' then
    insert into sluice.workflow_note (id, run) select w.id, w.run from unnest(v_gone) u(id) cross join lateral (select x.id, x.run from sluice.workflow_task x where x.id = u.id limit 1) w;
    if found then perform sluice.look_by(v_now + interval '100 milliseconds'); end if;
  end if;
  if v_gone <> '{}' then perform sluice.workflow_bereave(v_gone); end if;
  -- What they held may let others through, whom no enqueue announces.
  if v_gone <> '{}' and exists (select from sluice.worker where asleep) then
    perform sluice.ring(array(select distinct t.stream from sluice.task t where t.id = any (v_gone) and t.lanes is not null), cardinality(v_gone));
  end if;
  return query select x.id, x.answer from sluice.cancel_answers(p_ids, v_gone, v_asked) x;
end $$;

-- What a cancel came to, per id and in their order. Joined: to search the lists for each id would cost the square of
-- their length. Without settings of its own, so that it becomes a part of the statement that calls it.
create function sluice.cancel_answers(p_ids bigint[], p_gone bigint[], p_asked bigint[]) returns table (id bigint, answer text) language sql stable as $$
  select u.id, case when g.id is not null then 'cancelled' when s.id is not null then 'asked' when d.ended then 'over'
    when t.there then 'moving' else 'unknown' end
  from unnest(p_ids) with ordinality u(id, n) left join unnest(p_gone) g(id) on g.id = u.id left join unnest(p_asked) s(id) on s.id = u.id
  left join lateral (select true as ended from sluice.done k where k.id = u.id limit 1) d on g.id is null and s.id is null
  left join lateral (select true as there from sluice.task k where k.id = u.id limit 1) t on g.id is null and s.id is null and d.ended is null
  order by u.n
$$;

-- What retries by hand came to, by a token of the call: one whose reply was lost is asked for again under the same token,
-- and is told the same. Kept for ten minutes; each retry forgets some that are older.
create table sluice.retried (
  token bigint primary key, answer int not null, at timestamptz not null default sluice.clock()
);
create index retried_at on sluice.retried (at);

create function sluice.note_retried(p_token bigint, p_answer int) returns void language plpgsql
set enable_seqscan = off as $$
begin
  if p_token is null then return; end if;
  insert into sluice.retried (token, answer) values (p_token, p_answer);
  delete from sluice.retried where token = any (array(select r.token from sluice.retried r
    where r.at < sluice.clock() - interval '10 minutes' order by r.at limit 10 for update skip locked));
end $$;

-- A failed or cancelled task runs again from its first attempt, in its old place. What it had fanned out goes on with
-- it; while that is being cancelled it is refused, because it would find nothing but that. p_token: see sluice.retried.
create function sluice.retry(p_id bigint, p_token bigint default null) returns boolean language plpgsql
set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_counted boolean; v_made bigint[] := array(select r.id from sluice.workflow_run r where r.parent = p_id); v_runs bigint[]; v_run bigint; v_left int := 1000;
begin
  -- The run that it belongs to, and what it made. Whoever cancels what is left of an ended task looks at the task under
  -- this lock, so one of the two sees the other.
  -- guard: a retry locks what its task made -> test/postgres/workflow/races.test.ts: "what a task had fanned out goes on if the task is retried before anybody cancels it"
  v_runs := v_made || array(select w.run from sluice.workflow_task w where w.id = p_id);
  if v_runs <> '{}' then perform sluice.workflow_shared(v_runs); end if;
  if exists (select from sluice.retried r where r.token = p_token) then return true; end if;
  if exists (select from sluice.workflow_task where id = p_id) then
    v_counted := sluice.workflow_uncount(p_id);
    -- A retry of its run is bringing it back.
    if v_counted is null then return true; end if;
    if not v_counted then return false; end if;
  end if;
  if exists (select from sluice.workflow_run r where r.id = any (v_made) and r.stopping and r.finished_at is null) then
    perform sluice.refuse('workflow_stopping', 'what this task fanned out is being cancelled: wait for its end'); end if;
  if sluice.retry_many(array[p_id]) = 0 then
    -- The first call may have been under way until now.
    -- guard: a retry is asked for twice -> test/postgres/workflow/again.test.ts: "a retry of a task that is asked for again under its token while the first is under way is told the same"
    return exists (select from sluice.retried r where r.token = p_token);
  end if;
  perform sluice.note_retried(p_token, 1);
  -- The first of what it made, in the order of their windows' lanes; the rest, and what that made, is a keeper's.
  if v_made <> '{}' then
    for v_run in select a.run from sluice.workflow_again a join sluice.workflow_run r on r.id = a.run join sluice.workflow_node n on n.run = a.run and n.node = a.node
        where a.run = any (v_made) and not r.paused order by n.lane loop
      v_left := v_left - sluice.workflow_again_run(v_run, v_left);
      exit when v_left <= 0;
    end loop;
  end if;
  return true;
end $$;

-- Returns how many. The caller has seen to it that no run counts them as over, and holds the locks of what they fanned
-- out, none of which is being cancelled.
create function sluice.retry_many(p_ids bigint[]) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_ids bigint[]; v_streams int[];
begin
  with gone as (
    delete from sluice.done where ctid = any (array(select x.tid from unnest(p_ids) u(id) cross join lateral (
      select d.ctid as tid from sluice.done d where d.id = u.id and d.state in ('f', 'c') limit 1) x)) returning id
  ) select array_agg(id) into v_ids from gone;
  if v_ids is null then return 0; end if;
  delete from sluice.stop where id = any (v_ids);
  delete from sluice.crash where id = any (v_ids);
  with unblocked as (
    delete from sluice.block where id = any (v_ids) returning id
  ), back as materialized (
    select t.*, case when b.id is null then 0 else 1 end as held from unnest(v_ids) u(id) cross join lateral (select * from sluice.task where id = u.id limit 1) t left join unblocked b on b.id = u.id
  ), waits as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, 0, held, stream, gate, lanes, lane_limits from back where held < cardinality(lanes)
  ), notes as (
    insert into sluice.dirty (lane, limit_id) select lanes[held + 1], max(lane_limits[held + 1]) from back where held < cardinality(lanes) group by 1
  ), readies as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes) select id, stream, rank, 0, sluice.own_turn(id), lanes from back where held >= coalesce(cardinality(lanes), 0) and gate = 0
  ), gates as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes) select id, stream, gate, rank, 0, sluice.own_turn(id), lanes from back where held >= coalesce(cardinality(lanes), 0) and gate <> 0
  )
  select array_agg(distinct stream) into v_streams from back;
  perform sluice.ring(v_streams, cardinality(v_ids));
  if exists (select from sluice.workflow_run r where r.parent = any (v_ids) and r.state in ('f', 'c')) then perform sluice.workflow_map_again(v_ids); end if;
  return cardinality(v_ids);
end $$;

-- A blocked order key goes on without its failed task.
create function sluice.unblock(p_id bigint) returns boolean language plpgsql as $$
begin
  with gone as (delete from sluice.block where id = p_id returning lane)
  insert into sluice.dirty (lane, limit_id, freed) select lane, 0, 1 from gone;
  if not found then return false; end if;
  perform sluice.ring(array[stream], 1) from sluice.task where id = p_id;
  return true;
end $$;

-- The state of one task. One statement, one snapshot: it is found in exactly one place.
create view sluice.task_state as
  select t.id, s.type, s.queue, -t.rank as priority, t.created_at, t.attempts_max, t.input, t.lanes, t.lane_limits, t.lane_keys, t.gate,
    x.state, x.attempt, x.run_at, x.worker, x.started_at, x.finished_at, x.outcome
  from sluice.task t join sluice.stream s on s.id = t.stream
  cross join lateral (
    select 'scheduled' as state, attempt, run_at, null::bigint as worker, null::timestamptz as started_at, null::timestamptz as finished_at, null::json as outcome from sluice.scheduled where id = t.id
    union all select 'waiting', w.attempt, null, null, null, null, null from unnest(t.lanes) l(id) cross join lateral (select attempt from sluice.wait w where w.lane = l.id and w.place = sluice.lane_place(l.id, t.rank) and w.id = t.id limit 1) w
    union all select 'ready', r.attempt, null, null, null, null, null from sluice.ready r where t.gate = 0 and t.lanes is null and r.stream = t.stream and r.rank = t.rank and r.turn = sluice.own_turn(t.id)
    union all select 'ready', r.attempt, null, null, null, null, null from sluice.ready r where t.gate = 0 and t.lanes is not null and r.lanes is not null and r.id = t.id
    union all select 'waiting', g.attempt, null, null, null, null, null from sluice.gated g where t.gate <> 0 and t.lanes is null and g.stream = t.stream and g.gate = t.gate and g.rank = t.rank and g.turn = sluice.own_turn(t.id)
    union all select 'waiting', g.attempt, null, null, null, null, null from sluice.gated g where t.gate <> 0 and t.lanes is not null and g.lanes is not null and g.id = t.id
    union all select 'waiting', attempt, null, null, null, null, null from sluice.park where id = t.id
    union all select 'waiting', attempt, null, null, null, null, null from sluice.parent where id = t.id
    union all select 'ready', attempt, null, null, null, null, null from sluice.suspect where id = t.id
    union all select 'running', attempt, null, worker, started_at, null, null from sluice.run where id = t.id
    union all select case state when 's' then 'succeeded' when 'f' then 'failed' else 'cancelled' end, attempt, null, worker, started_at, finished_at, outcome from sluice.done where id = t.id
  ) x;

-- The names of limits that claims have met, for metrics.
create function sluice.limit_names(p_limits int[]) returns table (id int, name text) language sql stable as
$$ select l.id, l.name from sluice.limits l where l.id = any (p_limits) $$;

-- How many limits there are, counted up to p_max.
create function sluice.limit_count(p_max int) returns int language sql stable as
$$ select count(*)::int from (select from sluice.limits limit p_max) x $$;

-- The slots of limits, for metrics: at most p_max limits. Those named come first, then those with the most tasks that
-- run now, then others by name. A limit per key is told under name/*, by the key that has the most. slots: null while
-- lifted. waiting: tasks that stand before a limit that is full, counted up to 1,000. What is looked at is bounded, so
-- that a million limits, keys or tasks cost no more: 10,000 tasks that run, 10,000 keys of a limit, 1,000 sets of a
-- total.
create function sluice.limit_slots(p_names text[], p_max int) returns table (name text, slots int, used int, waiting int)
language sql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
  with running as materialized (
    select r.gate, r.stream_gate, count(*) as n
    from (select x.gate, x.stream_gate from sluice.run x limit 10000) r group by 1, 2
  ), fullest as materialized (
    select g.id, sum(r.n) as n from running r cross join lateral unnest(sluice.gates_of(r.gate) || r.stream_gate) g(id)
    where g.id > 0 group by g.id order by 2 desc, 1 limit p_max
  ), candidate as (
    select l.id, 1 as place, 0 as n from sluice.limits l where l.name = any (p_names)
    union all select f.id, 2, -f.n from fullest f
    union all select l.id, 3, 0 from (select x.id from sluice.limits x order by x.name limit p_max) l
  ), chosen as materialized (
    select l.*, coalesce(total_override, total_declared) as total, coalesce(per_key_override, per_key_declared) as per_key
    from (
      select c.id, min(c.place) as place, min(c.n) as n from candidate c group by c.id order by 2, 3, 1 limit p_max) c
    cross join lateral (select x.* from sluice.limits x where x.id = c.id limit 1) l order by c.place, c.n, l.name
  )
  select l.name::text, nullif(l.total, 2147483647), g.used,
    case when g.used < l.total then 0 else (select count(*) from (
      select from sluice.gate_stream st
      cross join lateral (select l.id as gate union all
        select m.gate from (select x.gate from sluice.gate_member x where x.total = l.id limit 1000) m) t
      cross join lateral (select from sluice.gated w where w.stream = st.stream and w.gate = t.gate limit 1000) w
      where st.gate = l.id
      union all
      select from sluice.stream st cross join lateral (select from sluice.ready r where r.stream = st.id limit 1000) r where st.gate = l.id
      limit 1000) w) end::int
  from chosen l cross join lateral (
    select (k.used - coalesce((select sum(c.n) from sluice.credit c where c.gate = k.id), 0))::int as used from sluice.gate k where k.id = l.id) g
  where l.total is not null
  union all
  select l.name || '/*', nullif(l.per_key, 2147483647),
    coalesce((select max(n.used) from (select n.used from sluice.lane n where n.limit_id = l.id and n.limit_id > 0 limit 10000) n), 0)::int,
    (select count(*) from (
      select from (select n.id from (select n.id, n.used from sluice.lane n where n.limit_id = l.id and n.limit_id > 0 limit 10000) n where n.used >= l.per_key limit 1000) n
      cross join lateral (select from sluice.wait w where w.lane = n.id limit 1000) w limit 1000) w)::int
  from chosen l where l.per_key is not null
$$;
