-- Recurring schedules. A row says what to enqueue and when next; the keeper of any worker enqueues it,
-- also of one that does not know the task, because what only code can decide (order key, limits and
-- their keys) was decided when the schedule was set. Limits are kept by name: their numbers are looked
-- up when the task is claimed, as for any other task.
--
-- How a tick is enqueued exactly once. A keeper sees a row whose time has come and computes, from the
-- clock of the database, which ticks to enqueue and when the next one is. Then one statement locks the
-- row, checks that its revision is still the one seen, enqueues and moves the row on. Every change
-- of a row gives it a revision that no row ever had: of any number of keepers one finds the revision it
-- saw, and a statement that was sent twice, or answered into the void, finds another the second time.
--
-- The lock on a schedule's row guards its revision and with it next_at. It is taken before anything
-- else, one per transaction and never inside a user's transaction. Whoever holds it takes none of the locks
-- of the order (barrier, run rows, lanes, gates) afterwards: enqueue only inserts. So it can be part of no cycle.

create sequence sluice.schedule_revision;

-- limit_keys: for each of limit_names its key, '' for a limit without keys. input: where a text equals
-- the mark of the client it stands for the time of the tick. digest: all that `set` was given. enabled is
-- what the code says, paused the operator's hand. next_at: the time of the next tick; due_at: when to
-- look at it, which is later after a refusal (trouble). Both are null while it does not tick.
create table sluice.schedule (
  name text primary key,
  digest text not null,
  stream int not null,
  input json not null,
  cron text,
  time_zone text,
  every_ms bigint check (every_ms > 0),
  missed text not null check (missed in ('skip', 'once', 'all')),
  priority int not null,
  attempts int not null,
  order_key text,
  order_blocks boolean not null,
  limit_names text[] not null,
  limit_keys text[] not null,
  enabled boolean not null,
  paused boolean not null default false,
  next_at timestamptz,
  due_at timestamptz,
  last_at timestamptz,
  last_task bigint,
  trouble text,
  revision bigint not null default nextval('sluice.schedule_revision'),
  check (num_nonnulls(cron, every_ms) = 1),
  check ((cron is null) = (time_zone is null)),
  check (cardinality(limit_names) = cardinality(limit_keys)),
  check ((next_at is not null) = (enabled and not paused)),
  check ((next_at is null) = (due_at is null))
) with (fillfactor = 70);
create index schedule_due on sluice.schedule (due_at, name) where due_at is not null;

create view sluice.schedule_status as
  select c.name, s.type, s.queue, c.cron, c.time_zone, c.every_ms, c.missed, c.enabled, c.paused, c.next_at, c.last_at, c.last_task, c.trouble,
    c.digest, c.revision, octet_length(c.input::text) as input_bytes
  from sluice.schedule c join sluice.stream s on s.id = c.stream;

-- p_seen: the revision that next_at was computed for; null for a schedule that did not exist. False when
-- it has changed meanwhile: look again.
create function sluice.set_schedule(
  p_name text, p_seen bigint, p_digest text, p_stream int, p_input json, p_cron text, p_time_zone text, p_every_ms bigint, p_missed text,
  p_priority int, p_attempts int, p_order_key text, p_order_blocks boolean, p_limit_names text[], p_limit_keys text[],
  p_enabled boolean, p_next_at timestamptz)
returns boolean language plpgsql as $$
begin
  perform sluice.hold_limits(array(select l.id from sluice.limits l where l.name = any (p_limit_names)));
  if exists (select from unnest(p_limit_names) n where not exists (select from sluice.limits l where l.name = n)) then
    perform sluice.refuse('unknown_limit', 'no such limit'); end if;
  if p_seen is null then
    insert into sluice.schedule (name, digest, stream, input, cron, time_zone, every_ms, missed, priority, attempts, order_key, order_blocks,
      limit_names, limit_keys, enabled, next_at, due_at)
    values (p_name, p_digest, p_stream, p_input, p_cron, p_time_zone, p_every_ms, p_missed, p_priority, p_attempts, p_order_key, p_order_blocks,
      p_limit_names, p_limit_keys, p_enabled, case when p_enabled then p_next_at end, case when p_enabled then p_next_at end)
    on conflict (name) do nothing;
    if not found then return false; end if;
    perform sluice.look_by(p_next_at);
    return true;
  end if;
  update sluice.schedule set digest = p_digest, stream = p_stream, input = p_input, cron = p_cron, time_zone = p_time_zone, every_ms = p_every_ms,
    missed = p_missed, priority = p_priority, attempts = p_attempts, order_key = p_order_key, order_blocks = p_order_blocks,
    limit_names = p_limit_names, limit_keys = p_limit_keys, enabled = p_enabled, trouble = null, revision = default,
    next_at = case when p_enabled and not paused then p_next_at end, due_at = case when p_enabled and not paused then p_next_at end
  where name = p_name and revision = p_seen;
  if not found then return false; end if;
  perform sluice.look_by(p_next_at);
  return true;
end $$;

-- When this returns, nothing is enqueued for the schedule any more: a keeper that had the row in hand
-- has committed, and one that had only seen it finds another revision. False if there is none.
create function sluice.pause_schedule(p_name text) returns boolean language plpgsql as $$
begin
  update sluice.schedule set paused = true, next_at = null, due_at = null, trouble = null, revision = default where name = p_name;
  return found;
end $$;

-- False when it has changed since it was seen: look again.
create function sluice.resume_schedule(p_name text, p_seen bigint, p_next_at timestamptz) returns boolean language plpgsql as $$
begin
  update sluice.schedule set paused = false, next_at = case when enabled then p_next_at end, due_at = case when enabled then p_next_at end, revision = default
  where name = p_name and revision = p_seen;
  if not found then return false; end if;
  perform sluice.look_by(p_next_at);
  return true;
end $$;

-- Schedules whose time has come, at most p_max, as a JSON list. now_ms: the clock they were judged by.
-- wait_ms: how long until the next one, null if there is none.
create function sluice.due_schedules(p_max int, out due json, out now_ms float8, out wait_ms float8)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_now timestamptz := sluice.clock();
begin
  now_ms := floor(extract(epoch from v_now) * 1000);
  due := (select json_agg(json_build_object('name', d.name, 'revision', d.revision::text, 'cron', d.cron, 'timeZone', d.time_zone, 'everyMs', d.every_ms,
      'missed', d.missed, 'nextAtMs', extract(epoch from d.next_at) * 1000,
      'inputBytes', case when d.missed = 'all' then octet_length(d.input::text) else 0 end) order by d.due_at, d.name)
    from (select * from sluice.schedule where due_at <= v_now order by due_at, name limit p_max) d);
  wait_ms := (select ceil(extract(epoch from due_at - v_now) * 1000) from sluice.schedule where due_at > v_now order by due_at limit 1);
end $$;

-- Enqueues one task per tick, in the order of the ticks, and returns their ids. p_ticks: times as text,
-- as they are put in the place of the mark. p_once: never the same tick twice, though the schedule was
-- removed and set anew and the clock set back between. No user's key begins with a control character.
create function sluice.enqueue_ticks(p_schedule sluice.schedule, p_ticks text[], p_mark text, p_once boolean) returns bigint[] language plpgsql as $$
declare
  v_prefix text := E'\x1f' || (p_schedule).name || E'\x1f'; v_type text := (select type from sluice.stream where id = (p_schedule).stream);
  v_now timestamptz := sluice.clock(); v_limits int[]; v_keys text; v_n int; v_inputs text; v_once text;
begin
  if p_once then
    p_ticks := array(select u.tick from unnest(p_ticks) with ordinality u(tick, n) where not exists (
      select from sluice.idempotency i where i.type = v_type and i.key = v_prefix || u.tick and i.expires_at > v_now) order by u.n);
    v_once := (select string_agg(v_prefix || u.tick, E'\x1e' order by u.n) from unnest(p_ticks) with ordinality u(tick, n));
  end if;
  v_n := cardinality(p_ticks);
  if v_n = 0 then return '{}'; end if;
  -- A limit that was removed limits nothing, like for tasks that still carry it.
  select array_agg(l.id order by u.n), string_agg(u.key, E'\x1f' order by u.n) filter (where l.per_key_declared is not null) into v_limits, v_keys
  from unnest((p_schedule).limit_names, (p_schedule).limit_keys) with ordinality u(name, key, n) join sluice.limits l on l.name = u.name;
  v_inputs := (select string_agg(replace((p_schedule).input::text, to_json(p_mark)::text, to_json(u.tick)::text), E'\x1e' order by u.n)
    from unnest(p_ticks) with ordinality u(tick, n));
  return (select e.ids from sluice.enqueue_many((p_schedule).stream, (p_schedule).priority, (p_schedule).attempts, v_inputs, v_limits,
    case when v_keys is not null then array_to_string(array_fill(v_keys, array[v_n]), E'\x1e') end,
    case when (p_schedule).order_key is not null then array_to_string(array_fill((p_schedule).order_key, array[v_n]), E'\x1e') end,
    (p_schedule).order_blocks, null, v_once) e);
end $$;

-- Enqueues these ticks and moves the schedule on to p_next_at, or does nothing: 'fired', 'taken' when it
-- is not as it was seen, 'refused' when the tasks cannot be enqueued as they are. Then it says why, and
-- is looked at again in half a minute: its ticks are not lost, and it is in nobody's way.
create function sluice.fire_schedule(p_name text, p_revision bigint, p_ticks text[], p_next_at timestamptz, p_mark text, out answer text, out trouble text)
language plpgsql as $$
declare v sluice.schedule; v_ids bigint[];
begin
  select * into v from sluice.schedule s where s.name = p_name and s.revision = p_revision and s.next_at <= sluice.clock() for update skip locked;
  if not found then answer := 'taken'; return; end if;
  begin
    v_ids := sluice.enqueue_ticks(v, p_ticks, p_mark, true);
  exception when sqlstate 'SLUIC' then
    answer := 'refused'; trouble := sqlerrm;
    update sluice.schedule s set due_at = sluice.clock() + interval '30 seconds', trouble = fire_schedule.trouble, revision = default where s.name = p_name;
    return;
  end;
  update sluice.schedule s set next_at = p_next_at, due_at = p_next_at, trouble = null, revision = default,
    last_at = coalesce(p_ticks[cardinality(p_ticks)]::timestamptz, s.last_at), last_task = coalesce(v_ids[cardinality(v_ids)], s.last_task)
  where s.name = p_name;
  answer := 'fired';
end $$;

-- One task now, as a tick would make it, whatever the state of the schedule. Changes nothing of it.
create function sluice.trigger_schedule(p_name text, p_mark text) returns bigint language plpgsql as $$
declare v sluice.schedule;
begin
  select * into v from sluice.schedule where name = p_name;
  if not found then return null; end if;
  return (sluice.enqueue_ticks(v, array[to_char(sluice.clock() at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')], p_mark, false))[1];
end $$;
