-- The words of the specifications, in the schema `public` of a migrated database of their own.
-- Procedures (call ...) say what is given, for isolationtester prints what a setup selects; functions
-- (select ...) are the moves and tell in words what came of them.

-- Lanes get the same ids everywhere.
update sluice.setting set value = 'isolation' where name = 'lane_secret';

-- No lock is waited for so long that its own time limit ends the wait: who waits is freed by a step of
-- the permutation and by nothing else, however slow the machine. Only the limits change, no body.
alter function sluice.step set lock_timeout = '10min';
alter function sluice.settle set lock_timeout = '10min';
alter function sluice.barrier_exclusive set lock_timeout = '10min';
alter function sluice.set_stream_gate set lock_timeout = '10min';
alter function sluice.workflow_keep set lock_timeout = '10min';
alter function sluice.workflow_cancel set lock_timeout = '10min';
alter function sluice.workflow_lock_shared set lock_timeout = '10min';

do $$
declare setting text;
begin
  foreach setting in array array['jit = off', 'max_parallel_workers_per_gather = 0', 'synchronous_commit = off', 'deadlock_timeout = ''100ms'''] loop
    execute format('alter database %I set %s', current_database(), setting);
  end loop;
end $$;

-- Workers have small numbers; streams: what each serves, also when it is dead. hand: what it believes
-- to hold, and under which claim. A zombie goes on believing.
create table crew (worker int primary key, streams int[] not null);
create table hand (worker int not null, id bigint not null, claim bigint not null, n bigint generated always as identity);
create sequence token;

create procedure clear() language plpgsql as $$
declare statement text;
begin
  for statement in select format('delete from %I.%I', schemaname, tablename) from pg_tables
    where schemaname in ('sluice', 'public') and tablename not in ('setting', 'migration', 'compatibility', 'installed')
    union all select format('alter sequence %I.%I restart', schemaname, sequencename) from pg_sequences where schemaname in ('sluice', 'public')
  loop execute statement; end loop;
  insert into sluice.pulse default values;
end $$;

create function listed(p_ids bigint[]) returns text language sql as
$$ select coalesce(string_agg(id::text, ',' order by id), 'none') from unnest(p_ids) id $$;

-- Given: limits, types with their limits, workers with the types they serve (none named: all).

create procedure per_key(name text, n int) language plpgsql as $$
begin perform sluice.declare_limit(name, null, n); end $$;

create procedure total(name text, n int) language plpgsql as $$
begin perform sluice.declare_limit(name, n, null); end $$;

create procedure total_and_per_key(name text, n int) language plpgsql as $$
begin perform sluice.declare_limit(name, n, n); end $$;

create procedure task_type(type text, variadic limits text[] default '{}') language plpgsql as $$
begin
  perform sluice.declare_contract(type, 'default', 0, 25, false, null, false,
    array(select l.id from sluice.limits l where l.name = any (limits) order by l.id), null);
end $$;

create procedure worker(number int, variadic types text[] default '{}') language plpgsql as $$
declare v_streams int[] := array(select s.id from sluice.stream s where types = '{}' or s.type = any (types) order by s.id);
  v_id bigint := sluice.register('worker', v_streams, 3600000, 100);
begin
  update sluice.worker set id = number where id = v_id;
  insert into crew values (number, v_streams);
end $$;

create function repeated(p_text text, p_n int) returns text language sql as
$$ select rtrim(repeat(p_text || E'\x1e', p_n), E'\x1e') $$;

-- Enqueue: the limits are those of the type; a key goes to each of them that is per key.

create function enqueue(n int, type text default 't', key text default null, ordered_by text default null, later boolean default false)
returns text language plpgsql as $$
declare v_limits int[]; v_stream int; v_ids bigint[];
begin
  select s.id, nullif(c.limit_ids, '{}') into v_stream, v_limits from sluice.stream s join sluice.contract c on c.type = s.type where s.type = enqueue.type;
  select e.ids into v_ids from sluice.enqueue_many(v_stream, 0, 25, repeated('{}', n), v_limits, repeated(key, n), repeated(ordered_by, n), false,
    case when later then sluice.clock() + interval '1 hour' end) e;
  return 'enqueued ' || listed(v_ids);
end $$;

create procedure queued(n int, type text default 't', key text default null, ordered_by text default null) language plpgsql as $$
begin perform enqueue(n, type, key, ordered_by); end $$;

-- Tasks that were for later, and whose time has come.
create procedure scheduled(n int, type text default 't', key text default null, ordered_by text default null) language plpgsql as $$
begin
  perform enqueue(n, type, key, ordered_by, true);
  update sluice.scheduled set run_at = sluice.clock() - interval '1 second';
end $$;

-- What a worker does. A step settles these and claims n more.

create function step_of(p_worker int, p_n int, p_ids bigint[]) returns text language plpgsql as $$
declare
  -- Never a multiple of 16 less one: at such a token a claim leaves rivals nothing, which is another story.
  v_token bigint := 16 * nextval('token'); v_claims bigint[]; v_started bigint[]; v_refused int; v_said text[];
begin
  v_claims := array(select (select h.claim from hand h where h.worker = p_worker and h.id = u.id order by h.n desc limit 1) from unnest(p_ids) u(id));
  select array_agg(s.id) filter (where s.id is not null), sum((s.report ->> 'refused')::int) into v_started, v_refused
  from sluice.step(p_worker, v_token, (select streams from crew c where c.worker = p_worker), p_n, nullif(p_ids, '{}'), nullif(v_claims, '{}')) s;
  insert into hand (worker, id, claim) select p_worker, id, v_token from unnest(v_started) id;
  if p_ids <> '{}' then v_said := v_said || format('settled %s of %s', cardinality(p_ids) - coalesce(v_refused, 0), cardinality(p_ids)); end if;
  if p_n > 0 then v_said := v_said || ('started ' || listed(v_started)); end if;
  return array_to_string(v_said, ', ');
end $$;

create function claim(worker int, n int) returns text language sql as $$ select step_of(worker, n, '{}') $$;
create function complete(worker int, variadic ids bigint[]) returns text language sql as $$ select step_of(worker, 0, ids) $$;
create function complete_and_claim(worker int, n int, variadic ids bigint[]) returns text language sql as $$ select step_of(worker, n, ids) $$;

-- Hands back what the worker holds of everything but these, whose claims it knows.
create function release_unknown(p_worker int, variadic p_known bigint[]) returns text language sql as
$$ select 'handed back ' || sluice.release_unknown(p_worker, array(select h.claim from hand h where h.worker = p_worker and h.id = any (p_known))) $$;

create procedure taken(worker int, n int) language plpgsql as $$
begin perform claim(worker, n); end $$;

-- r: retry at once, z: snooze, b: hand back, f: fail.
create function settle(p_worker int, p_kind sluice.settlement, p_id bigint) returns text language plpgsql as $$
declare v_claim bigint := (select claim from hand h where h.worker = p_worker and h.id = p_id order by h.n desc limit 1);
begin
  return case when sluice.settle(p_worker, array[p_id], array[v_claim], array[p_kind], array[0], null) is null then 'refused' else 'settled ' || p_id end;
end $$;

-- What a user does, in a transaction that he may leave open.

create function complete_in_transaction(p_worker int, p_id bigint) returns text language plpgsql as $$
begin
  perform sluice.settle_in_transaction(p_worker, p_id, (select claim from hand h where h.worker = p_worker and h.id = p_id order by h.n desc limit 1), null, true);
  return 'accepted ' || p_id;
end $$;

create function cancel(variadic ids bigint[]) returns text language sql as
$$ select string_agg(c.id || ' ' || c.answer, ', ' order by c.id) from sluice.cancel(ids) c $$;

-- What an operator and a keeper do.

create function set_per_key(name text, n int) returns text language plpgsql as $$
begin perform sluice.set_limit(name, null, n); return 'set to ' || n; end $$;

create function set_total(name text, n int) returns text language plpgsql as $$
begin perform sluice.set_limit(name, n, null); return 'set to ' || n; end $$;

create function limit_type(type text, n int) returns text language plpgsql as $$
begin perform sluice.declare_contract(type, 'default', 0, 25, false, null, false, '{}', n); return 'limited to ' || n; end $$;

create function lease_of_runs_out(number int) returns text language plpgsql as $$
begin
  update sluice.worker set expires_at = sluice.clock() - interval '1 second' where id = number;
  return 'worker ' || number || ' is dead';
end $$;

create procedure dead(number int) language plpgsql as $$
begin perform lease_of_runs_out(number); end $$;

create procedure lowered(name text, n int) language plpgsql as $$
begin perform set_per_key(name, n); end $$;

-- The notes are looked at, once.
create procedure admitted() language plpgsql as $$
begin perform sluice.admit_dirty(1000); end $$;

create function reap() returns text language sql as $$ select 'took back ' || tasks from sluice.reap() $$;
create function due() returns text language sql as $$ select 'moved ' || moved from sluice.due(1000) $$;
create function shed() returns text language sql as $$ select 'shed ' || shed from sluice.shed() $$;
create function recall() returns text language sql as $$ select 'recalled ' || sluice.recall(1000) $$;
create function park() returns text language sql as $$ select 'parked ' || sluice.park_closed_kinds(1000) $$;
create function unpark() returns text language sql as $$ select 'brought back ' || sluice.unpark(1000) $$;

create function admit() returns text language plpgsql as $$
begin perform sluice.admit_dirty(1000); return 'looked at the notes'; end $$;

-- A schedule that ticks every hour and is due. Its first revision is 1, and every change takes the next.
create procedure schedule(name text, type text) language plpgsql as $$
begin
  perform sluice.set_schedule(name, null, 'first', (select s.id from sluice.stream s where s.type = schedule.type), '{}', null, null, 3600000, 'skip',
    0, 25, null, false, '{}', '{}', true, sluice.clock() - interval '1 second');
end $$;

-- What a keeper does that has seen this revision and computed one tick from it.
create function fire(name text, seen bigint) returns text language sql as
$$ select answer from sluice.fire_schedule(name, seen, array['2030-01-01T00:00:00.000Z'], sluice.clock() + interval '1 hour', '(mark)') $$;

-- The same schedule with another priority, still due.
create function change_schedule(name text, seen bigint) returns text language sql as
$$ select case when sluice.set_schedule(name, seen, 'second', (select c.stream from sluice.schedule c where c.name = change_schedule.name), '{}', null, null, 3600000, 'skip',
    5, 25, null, false, '{}', '{}', true, sluice.clock() - interval '1 second') then 'changed' else 'has changed meanwhile' end $$;

create function pause_schedule(name text) returns text language sql as
$$ select case when sluice.pause_schedule(name) then 'paused' else 'there is none' end $$;

create function remove_schedule(name text) returns text language plpgsql as $$
begin
  delete from sluice.schedule s where s.name = remove_schedule.name;
  return case when found then 'removed' else 'there is none' end;
end $$;

-- A run of two nodes, the second of type 'u' and begun when the first has ended. The first is a task of type 't',
-- or a fan-out over so many items with this window.
create procedure run_of_two(items int default null, width int default null) language plpgsql as $$
declare v_first json := json_build_object('name', 'first', 'kind', case when items is null then 'task' else 'each' end, 'after', '[]'::json, 'type', 't',
  'input', '{"parts": ["null"], "nodes": [], "paths": []}'::json, 'window', width, 'onError', 'finish',
  'items', json_build_object('parts', json_build_array((select coalesce(json_agg(n), '[]') from generate_series(1, items) n)::text), 'nodes', '[]'::json, 'paths', '[]'::json));
begin
  perform sluice.workflow_start(sluice.workflow_declare('two', concat(items, ' ', width), '{}', json_build_array(v_first,
    '{"name": "second", "kind": "task", "after": [{"node": 1, "on": "end"}], "type": "u", "input": {"parts": ["null"], "nodes": [], "paths": []}}'::json)), 'null');
end $$;

create function cancel_run(run bigint) returns text language sql as $$ select sluice.workflow_cancel(run) $$;
create function keep_runs() returns text language sql as $$ select 'moved ' || moved from sluice.workflow_keep(1000) $$;

-- Each run and its nodes, with how many of their tasks have ended how.
create function nodes() returns table (node text, state text, ended text) language sql as $$
  select 'run ' || id, s.state, null from sluice.workflow_status s
  union all select * from (select p.name, p.state, format('%s of %s succeeded, %s failed, %s cancelled', p.succeeded, p.total, p.failed, p.cancelled) from sluice.workflow_progress p order by p.run, p.node) x
$$;

-- How it ends. Who runs, who is ready, who waits (at a lane; gated: at a total), where others are if
-- anywhere, and what must never be.
create function places() returns table (place text, tasks text) language sql as $$
  with found as (
    select 1 as n, 'running' as place, id from sluice.running union all select 2, 'ready', id from sluice.ready union all select 3, 'waiting', id from sluice.waiting
    union all select 4, 'gated', id from sluice.gated union all select 5, 'scheduled', id from sluice.scheduled union all select 6, 'parked', id from sluice.parked
    union all select 7, 'suspect', id from sluice.suspect
    union all select 8, state::text, id from sluice.done
    union all select 9, 'asked to stop', id from sluice.stop
  ), listed as (
    select coalesce(f.n, a.n) as n, coalesce(f.place, a.place) as place, listed(array_agg(f.id) filter (where f.id is not null)) as tasks
    from found f full join (values (1, 'running'), (2, 'ready'), (3, 'waiting')) a(n, place) on a.place = f.place group by 1, 2
    union all select 10, 'VIOLATION', format('%s: used %s, cap %s, held %s', what, used, cap, held) from sluice.violation
    union all select 10, 'violations', 'none' where not exists (select from sluice.violation)
  )
  select place, tasks from listed order by n, place, tasks
$$;

-- Everything that can come to its end does. A task that waits for ever is left; one that runs beside too
-- many is counted.
create function drain() returns text language plpgsql as $$
declare v_started bigint[]; v_now bigint[]; v_most int; v record; v_worker int := 99;
begin
  call worker(v_worker);
  v_most := (select count(*) from sluice.running);
  for v_round in 1..20 loop
    perform sluice.reap(), sluice.due(1000), sluice.workflow_keep(1000), sluice.keep_lanes(1000);
    v_now := array(select s.id from sluice.step(v_worker, 16 * nextval('token'), (select streams from crew where worker = v_worker), 100) s where s.id is not null order by s.id);
    v_started := v_started || v_now;
    v_most := greatest(v_most, (select count(*) from sluice.running));
    for v in select r.worker, array_agg(r.id order by r.id) as ids, array_agg(r.claim order by r.id) as claims from sluice.running r group by r.worker loop
      perform sluice.step(v.worker, 16, null, 0, v.ids, v.claims);
    end loop;
  end loop;
  return format('started %s; at most %s at once; left %s', coalesce(nullif(array_to_string(v_started, ','), ''), 'none'), v_most,
    listed(array(select t.id from sluice.task t where not exists (select from sluice.done d where d.id = t.id))));
end $$;
