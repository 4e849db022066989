-- Workers: one lease for all that a worker holds, renewed by one heartbeat, by the database's clock.

-- How many workers of one kind, which serve the same streams, are on call. Only these listen and are rung. The others
-- are in reserve: they poll. NOTIFY signals every backend that listens, about 50 us of CPU each, so the number bounds
-- what an enqueue costs however many workers there are.
create function sluice.on_call_max() returns int language sql immutable parallel safe as $$ select 5 $$;

-- The live workers of a kind: how many are on call, and how many sleep in reserve. A hint, read without locks.
create function sluice.crew_of(p_streams int[], out on_call int, out reserve int) language plpgsql stable as $$
begin
  select count(*) filter (where w.on_call_since is not null),
    count(*) filter (where w.on_call_since is null and w.asleep)
  into on_call, reserve
  from sluice.worker w where w.streams = p_streams and w.expires_at > sluice.clock() and not w.draining;
end $$;

-- p_listens: whether the worker can be on call. The first workers of a kind are on call from the start.
create function sluice.register(p_name text, p_streams int[], p_lease_ms int, p_capacity int,
  p_connections int default 0, p_listens boolean default true)
returns bigint language plpgsql as $$
declare v_id bigint := ('x' || substr(md5(gen_random_uuid()::text), 1, 15))::bit(60)::bigint;
begin
  insert into sluice.worker (id, name, streams, lease_ms, expires_at, connections, capacity_max, capacity_available,
    on_call_since)
  values (v_id, p_name, p_streams, p_lease_ms, sluice.clock() + p_lease_ms * interval '1 millisecond', p_connections,
    p_capacity, p_capacity, case when p_listens
      and (select c.on_call from sluice.crew_of(p_streams) c) < sluice.on_call_max() then sluice.clock() end);
  -- Several streams are locked in the order of their ids: two registrations would wait for each other.
  update sluice.stream set unserved = false where id = any (array(
    select s.id from sluice.stream s where s.id = any (p_streams) and s.unserved order by s.id for update));
  return v_id;
end $$;

-- Volatile, so that the statement that has registered a worker can ask.
create function sluice.is_on_call(p_worker bigint) returns boolean language plpgsql volatile as $$
begin
  return exists (select from sluice.worker w where w.id = p_worker and w.on_call_since is not null);
end $$;

-- An idle worker in reserve asks whether it is needed on call. It takes a free place, or relieves a worker that has
-- been on call for a second and has tasks in hand, is awake or can take nothing: so load spreads over all workers, and
-- the workers that a ring can reach are idle ones. reserve: how many sleep in reserve, by which it decides how often to
-- poll.
-- Nobody waits for anything else while holding a worker's row, so the two row locks here have no order. Two workers
-- that ask at once may both take the last place: one listener more, until the next relief.
create function sluice.go_on_call(p_worker bigint, out on_call boolean, out reserve int) language plpgsql as $$
declare v sluice.worker; v_held int;
begin
  select * into v from sluice.worker w where w.id = p_worker;
  on_call := v.on_call_since is not null;
  select c.on_call, c.reserve into v_held, reserve from sluice.crew_of(v.streams) c;
  if v.id is null or on_call then return; end if;
  if v_held >= sluice.on_call_max() then
    -- guard: a worker with tasks in hand is relieved -> test/postgres/on-call.test.ts: "a worker in reserve relieves one that has tasks in hand, and no idle one"
    update sluice.worker set on_call_since = null where id = (
      select w.id from sluice.worker w
      where w.streams = v.streams and w.on_call_since < sluice.clock() - interval '1 second'
        and (w.busy or not w.asleep or w.capacity_available = 0)
      order by w.asleep, w.on_call_since limit 1 for update skip locked);
    if not found then return; end if;
  end if;
  update sluice.worker set on_call_since = sluice.clock() where id = p_worker;
  on_call := true;
end $$;

-- How many connections the server has, and who has a claim on them. The kind of a backend is hidden from
-- whoever is not its user, but one with a user and a database is a client's, nearly always.
create function sluice.connections(out server_max int, out reserved int, out in_use int, out workers int, out registered int) language sql as $$
  select current_setting('max_connections')::int,
    current_setting('superuser_reserved_connections')::int + coalesce(current_setting('reserved_connections', true)::int, 0),
    (select count(*)::int from pg_stat_activity a
      where a.usesysid is not null and a.datid is not null and coalesce(a.backend_type, 'client backend') = 'client backend'),
    count(*)::int, coalesce(sum(w.connections), 0)::int
  from sluice.worker w where w.expires_at > sluice.clock()
$$;

-- alive is false when the lease has run out, even if nobody has reaped it yet: then all is lost. on_call, reserve: as
-- in go_on_call.
create function sluice.beat(p_worker bigint, p_available int, p_memory bigint, p_draining boolean,
  p_pressure text default 'normal', p_pressure_reasons text[] default '{}', p_busy boolean default false,
  out alive boolean, out stops bigint[], out stop_reasons text[], out suspect bigint, out on_call boolean,
  out reserve int)
language plpgsql as $$
declare v_streams int[];
begin
  update sluice.worker set expires_at = sluice.clock() + lease_ms * interval '1 millisecond',
    capacity_available = p_available, memory_bytes = p_memory, draining = p_draining,
    pressure = p_pressure, pressure_reasons = p_pressure_reasons, busy = p_busy
  where id = p_worker and expires_at > sluice.clock()
  returning streams, on_call_since is not null into v_streams, on_call;
  alive := found;
  if not alive then return; end if;
  reserve := (select c.reserve from sluice.crew_of(v_streams) c);
  if exists (select from sluice.stop) then
    select array_agg(s.id), array_agg(s.reason) into stops, stop_reasons
    from sluice.stop s cross join lateral (select 1 from sluice.run r where r.id = s.id and r.worker = p_worker limit 1) r;
  end if;
  if exists (select from sluice.suspect) and not p_draining then suspect := sluice.reserve_suspect(p_worker, v_streams); end if;
end $$;

-- One worker empties itself for a suspect; a reservation ends with its worker.
create function sluice.reserve_suspect(p_worker bigint, p_streams int[]) returns bigint language sql as $$
  update sluice.suspect set reserved_by = p_worker where id = (
    select s.id from sluice.suspect s where s.stream = any (p_streams)
      and not exists (select from sluice.stream t where t.id = s.stream and t.paused)
      and (s.reserved_by is null or s.reserved_by = p_worker or not exists (select from sluice.worker w where w.id = s.reserved_by and w.expires_at > sluice.clock()))
    order by (s.reserved_by = p_worker) desc nulls last, s.id limit 1 for update skip locked)
  returning id
$$;

-- The worker could not empty itself in time: let another try.
create function sluice.release_suspect(p_worker bigint) returns void language plpgsql as $$
begin
  update sluice.suspect set reserved_by = null where reserved_by = p_worker;
end $$;

-- The worker holds nothing else now. Takes the suspect if its gates have room, else returns nothing. passed: as in step.
create function sluice.claim_suspect(p_worker bigint, p_claim bigint, p_id bigint)
returns table (id bigint, stream int, attempt smallint, input json, trace text, passed text, nonce bigint) language plpgsql as $$
#variable_conflict use_column
declare v_gates int[]; v_task sluice.task; v_stream_gate int;
begin
  perform sluice.barrier_shared();
  perform sluice.require_lease(p_worker);
  if exists (select from sluice.run r where r.worker = p_worker) then
    perform sluice.refuse('not_claimed', 'a suspect is claimed alone: this worker holds other tasks'); end if;
  -- Before any other lock: a user's open cancel may have it, and nobody waits for that.
  perform 1 from sluice.suspect x where x.id = p_id and x.reserved_by = p_worker for update skip locked;
  if not found then return; end if;
  select * into v_task from sluice.task t where t.id = p_id;
  if exists (select from sluice.stream t where t.id = v_task.stream and t.paused) then return; end if;
  -- Above a lowered number what counts is who runs: else suspects of one key would wait for each other.
  perform 1 from sluice.lane n where n.id = any (v_task.lanes) and n.used > sluice.cap_of(n.cap, n.limit_id)
  order by n.id for update;
  if found and exists (select from sluice.lane n where n.id = any (v_task.lanes) and n.used > sluice.cap_of(n.cap, n.limit_id)
      and sluice.cap_of(n.cap, n.limit_id) <= (select count(*) from sluice.run r where r.lanes @> array[n.id])) then return; end if;
  select case when gate = any (sluice.gates_of(v_task.gate)) then 0 else gate end into v_stream_gate from sluice.stream t where t.id = v_task.stream;
  v_gates := array(select distinct x from unnest(sluice.gates_of(v_task.gate) || v_stream_gate) x where x > 0 order by x);
  perform 1 from sluice.gate g where g.id = any (v_gates) order by g.id for update;
  if exists (select from unnest(v_gates) x where sluice.gate_room(x, null, null, p_id) <= 0) then return; end if;
  return query
  with taken as (
    delete from sluice.suspect x where x.id = p_id and x.reserved_by = p_worker returning *
  ), running as (
    insert into sluice.run (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
    select id, p_claim, p_worker, attempt + 1, sluice.clock(), v_task.gate, v_stream_gate, lanes from taken
  ), counted as (
    update sluice.gate g set used = used + 1, kept_for = nullif(kept_for, p_id) where g.id = any (v_gates) and exists (select from taken)
  )
  select t.id, t.stream, (t.attempt + 1)::smallint, v_task.input, v_task.trace,
    -- It was tried before, and there is room: it waited for other reasons.
    sluice.passed(1::smallint, null, null, coalesce((select string_agg(',' || x || ',9007199254740991', '') from unnest(v_gates) x), ''), v_task.lanes, null, v_task.lane_limits),
    v_task.nonce from taken t;
end $$;

-- Everything a worker holds under claims it does not know of: replies that were lost. Called again
-- and again until it holds nothing, because a cut-off claim may still commit.
create function sluice.release_unknown(p_worker bigint, p_known bigint[]) returns int language plpgsql as $$
declare v_ids bigint[]; v_claims bigint[];
begin
  perform sluice.barrier_shared();
  select array_agg(id), array_agg(claim) into v_ids, v_claims from sluice.run where worker = p_worker and claim <> all (p_known);
  if v_ids is null then return 0; end if;
  return coalesce(cardinality(sluice.settle(p_worker, v_ids, v_claims, array_fill('b'::text, array[cardinality(v_ids)]), null, null)), 0);
end $$;

-- A worker leaves. What it still holds goes back unharmed: it was not a crash.
create function sluice.retire(p_worker bigint) returns int language plpgsql as $$
declare v_n int := sluice.release_unknown(p_worker, '{}');
begin
  perform sluice.release_suspect(p_worker);
  delete from sluice.worker where id = p_worker;
  return v_n;
end $$;

-- Dead workers lose their row, then everything whose worker has no row comes back, keeping its narrow
-- slots and its attempts. Also what a dead worker's cut-off claim committed later. Safe for any
-- number of processes at once: rows are skipped when another reaper has them.
create function sluice.reap(out workers int, out tasks int, out poisoned int) language plpgsql set jit = off as $$
declare v_now timestamptz := sluice.clock(); v_streams int[]; v_poisoned bigint[]; v_states "char"[]; v_totals int[];
begin
  -- Further ahead than any lease reaches: the clock was set back. A live worker's next heartbeat says the same; a dead one's
  -- tasks would wait until the clock has caught up.
  -- guard: a clock that was set back -> test/postgres/clock.test.ts: "after the clock was set back a dead worker's lease ends within a lease"
  update sluice.worker set expires_at = v_now + lease_ms * interval '1 millisecond' where id = any (array(
    select id from sluice.worker where expires_at > v_now + (lease_ms + 1000) * interval '1 millisecond' for update skip locked));
  delete from sluice.worker where id = any (array(select id from sluice.worker where expires_at <= v_now for update skip locked));
  get diagnostics workers = row_count;
  with gone as (
    delete from sluice.run where ctid = any (array(
      select r.ctid from sluice.run r where not exists (select from sluice.worker w where w.id = r.worker) for update of r skip locked)) returning *
  ), unblamed as materialized (
    -- Died while it ran the user's code to place a node of a run: then no task in hand is to blame.
    select w.worker from (select distinct worker from gone) w
    where exists (select from sluice.workflow_trying t where t.worker = w.worker)
      or exists (select from sluice.workflow_unplaced u where u.died <> '{}' and u.died @> array[w.worker])
  ), crashed as (
    -- guard: who places a node may be to blame -> test/postgres/workflow/place.test.ts: "tasks in hand of a worker that died while it placed a node are not blamed"
    insert into sluice.crash as c (id, workers)
    select id, array[worker] from gone where worker not in (select p.worker from unblamed p) order by id
    on conflict (id) do update set workers = c.workers || excluded.workers returning c.id, cardinality(c.workers) as times
  ), fate as materialized (
    select g.*, t.stream, t.rank, t.gate as task_gate, t.lane_limits, c.times,
      case when exists (select from sluice.stop s where s.id = g.id) then 'c' when c.times > 3 then 'f' when c.times = 3 then 'suspect' else 'b' end as kind
    from gone g left join crashed k on k.id = g.id cross join lateral (select * from sluice.task where id = g.id limit 1) t
    cross join lateral (select coalesce(k.times, (select cardinality(h.workers) from sluice.crash h where h.id = g.id), 0) as times) c
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes) select id, stream, rank, attempt - 1, sluice.own_turn(id), lanes from fate where kind = 'b' and task_gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes) select id, stream, task_gate, rank, attempt - 1, sluice.own_turn(id), lanes from fate where kind = 'b' and task_gate <> 0
  ), to_suspect as (
    insert into sluice.suspect (id, stream, attempt, lanes) select id, stream, attempt - 1, lanes from fate where kind = 'suspect'
  ), blocked as (
    insert into sluice.block (id, lane) select id, lanes[1] from fate where kind = 'f' and lane_limits[1] = -1
  ), history as (
    insert into sluice.done (id, state, attempt, worker, started_at, finished_at, outcome)
    select id, kind::"char", attempt, worker, started_at, v_now,
      case when kind = 'f' then json_build_object('name', 'SluiceError', 'code', 'poisoned', 'message', 'its worker died or lost its lease ' || times || ' times with this task in hand, the last time with nothing else; a handler that blocks the event loop loses the lease too')
        else json_build_object('reason', (select s.reason from sluice.stop s where s.id = fate.id limit 1)) end
    from fate where kind in ('f', 'c')
  ), credits as (
    insert into sluice.credit (gate, n) select x.gate, count(*) from gone cross join lateral unnest(sluice.gates_of(gone.gate) || gone.stream_gate) x(gate) where x.gate <> 0 group by x.gate
    returning gate
  ), frees as (
    insert into sluice.dirty (lane, limit_id, freed) select l, 0, count(*) from fate, unnest(case when kind = 'f' and lane_limits[1] = -1 then lanes[2:] else lanes end) l
    where kind in ('f', 'c') group by l
  )
  select count(*), count(*) filter (where kind = 'f'), array_agg(distinct stream), array_agg(id order by id) filter (where kind in ('f', 'c')), array_agg(kind::"char" order by id) filter (where kind in ('f', 'c')),
    (select array_agg(gate) from credits)
  into tasks, poisoned, v_streams, v_poisoned, v_states, v_totals from fate;
  if v_totals is not null then perform sluice.note_returned(v_totals); end if;
  if v_poisoned is not null then
    delete from sluice.stop where id = any (v_poisoned);
    delete from sluice.crash where id = any (v_poisoned);
    perform sluice.tell_awaited(array(select distinct id from sluice.awaited where id = any (v_poisoned)));
    if exists (select from sluice.workflow_run where finished_at is null) then perform sluice.workflow_ended_elsewhere(v_poisoned, v_states); end if;
  end if;
  perform sluice.ring(array[x], tasks) from unnest(v_streams) x;
end $$;

-- These could not reach the database for longer than their lease, and tell now that they did not die:
-- what they had in hand is not to blame. What nobody has reaped yet goes back uncounted. Returns those of
-- which something is in another's hand just now: to be told again.
create function sluice.survived(p_workers bigint[]) returns bigint[] language plpgsql set lock_timeout = '500ms' as $$
declare v_ids bigint[]; v_claims bigint[]; v record; v_gone bigint[];
begin
  perform sluice.barrier_shared();
  delete from sluice.worker where id = any (array(select w.id from sluice.worker w where w.id = any (p_workers) and w.expires_at <= sluice.clock() for update skip locked));
  select array_agg(r.id), array_agg(r.claim) into v_ids, v_claims from sluice.run r
  where r.worker = any (p_workers) and not exists (select from sluice.worker w where w.id = r.worker);
  if v_ids is not null then
    select * into v from sluice.settle_others(v_ids, v_claims, array_fill('b'::text, array[cardinality(v_ids)]), null, null);
  end if;
  v_gone := array(select w from unnest(p_workers) w
    where not exists (select from sluice.worker x where x.id = w) and not exists (select from sluice.run r where r.worker = w));
  perform from sluice.crash c where c.workers && v_gone order by c.id for update;
  delete from sluice.crash where workers <@ v_gone;
  update sluice.crash set workers = array(select w from unnest(workers) w where w <> all (v_gone)) where workers && v_gone;
  -- Lanes come last, as in a step.
  if v_ids is not null then
    if v.ended is not null and exists (select from sluice.workflow_run where finished_at is null) then perform sluice.workflow_ended_elsewhere(v.ended, v.ended_states); end if;
    if v.gates is not null then perform sluice.give_back(v.gates, v.gates_n); end if;
    if v.lanes is not null then perform sluice.ring_streams(sluice.admit(v.lanes, null, null, null)); end if;
  end if;
  return array(select w from unnest(p_workers) w where w <> all (v_gone));
end $$;
