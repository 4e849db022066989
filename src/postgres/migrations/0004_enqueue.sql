-- Enqueue only inserts: no lane lock, no unique upsert (but for idempotency keys), so a user's
-- transaction left open for minutes blocks no worker.

-- Lists of texts arrive as one string, records split by U+001E and fields by U+001F, which neither
-- JSON text nor a checked key can contain: three times cheaper than an array in the driver.
-- p_limits: the limits of every task here, in order. p_keys: per task, a key for each of those
-- limits that has a per-key part. p_orders, p_idempotency: '' for a task without. p_trace: one
-- for all of them, or one per task and '' for a task without.
create function sluice.enqueue_many(
  p_stream int, p_priority int, p_attempts int, p_inputs text,
  p_limits int[] default null, p_keys text default null, p_orders text default null, p_order_blocks boolean default false,
  p_run_at timestamptz default null, p_idempotency text default null, p_idempotency_ms bigint default 86400000, p_delay_ms bigint default null,
  p_trace text default null,
  out ids bigint[], out existed boolean[])
language plpgsql set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_inputs json[] := string_to_array(p_inputs, E'\x1e')::json[];
  v_count int := cardinality(v_inputs);
  v_rank smallint;
  v_run_at timestamptz := coalesce(p_run_at, sluice.clock() + p_delay_ms * interval '1 millisecond');
  v_later timestamptz := case when v_run_at > sluice.clock() then v_run_at end;
  v_fresh boolean[];
  v_traces text[] := string_to_array(p_trace, E'\x1e', '');
begin
  -- guard: the door -> test/postgres/attacks.test.ts: "attack 6: bad lanes are refused at the door"
  if p_priority is null or p_priority not between -32000 and 32000 then perform sluice.refuse('invalid_option', 'priority must be an integer from -32000 to 32000'); end if;
  v_rank := -p_priority;
  if p_attempts is null or p_attempts not between 1 and 32000 then perform sluice.refuse('invalid_option', 'attempts must be an integer from 1 to 32000'); end if;
  if cardinality(v_traces) = 1 then v_traces := array_fill(v_traces[1], array[v_count]); end if;
  select array(select nextval('sluice.task_id') from generate_series(1, v_count)) into ids from sluice.stream where id = p_stream;
  if not found then perform sluice.refuse('unknown_queue', 'no such queue and type'); end if;
  if p_idempotency is not null then
    select f.ids, f.fresh into ids, v_fresh
    from sluice.claim_keys(p_stream, ids, string_to_array(p_idempotency, E'\x1e'), v_inputs, p_idempotency_ms) f;
    existed := array(select not f from unnest(v_fresh) f);
  end if;
  if p_limits is null and p_orders is null then
    perform sluice.insert_plain(p_stream, v_rank, p_attempts::smallint, ids, v_inputs, 0, v_later, v_fresh, v_traces);
  else
    perform sluice.insert_placed(p_stream, v_rank, p_attempts::smallint, ids, v_inputs, p_limits, p_keys, p_orders, p_order_blocks, v_later, v_fresh, v_traces);
  end if;
  -- guard: what is due later is looked at in time -> test/postgres/keeper.test.ts: "of tasks scheduled for soon the first tells the leader, those that are due after its next look do not"
  if v_later is not null then perform sluice.look_by(v_later);
  elsif exists (select from sluice.worker where asleep) then perform sluice.ring(array[p_stream], v_count); end if;
end $$;

create function sluice.insert_plain(
  p_stream int, p_rank smallint, p_attempts smallint, p_ids bigint[], p_inputs json[], p_gate int, p_later timestamptz, p_fresh boolean[], p_traces text[])
returns void language plpgsql set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  if p_fresh is not null then
    select array_agg(id order by id), array_agg(input order by id), array_agg(trace order by id) into p_ids, p_inputs, p_traces
    from unnest(p_ids, p_inputs, p_fresh, p_traces) u(id, input, fresh, trace) where fresh;
    if p_ids is null then return; end if;
  end if;
  insert into sluice.task (id, stream, rank, attempts_max, gate, input, trace, due_at)
  select id, p_stream, p_rank, p_attempts, p_gate, input, trace, p_later from unnest(p_ids, p_inputs, p_traces) u(id, input, trace);
  if p_later is not null then
    insert into sluice.scheduled (id, run_at, attempt, held) select id, p_later, 0, 0 from unnest(p_ids) id;
  elsif p_gate = 0 then
    insert into sluice.ready (id, stream, rank, attempt, turn) select id, p_stream, p_rank, 0, sluice.own_turn(id) from unnest(p_ids) id;
  else
    insert into sluice.gated (id, stream, gate, rank, attempt, turn) select id, p_stream, p_gate, p_rank, 0, sluice.own_turn(id) from unnest(p_ids) id;
  end if;
end $$;

-- Until this transaction ends, none of these limits is forgotten: a task that is not committed cannot be seen by
-- forget_limits. Groups share 32 advisory locks, so that a transaction that uses thousands of them takes few. They are
-- taken shared here and only tried by forget_limits, which waits for nothing while it has one: so an open transaction
-- makes nobody wait, and an enqueue waits for a few milliseconds at most. Whoever calls this checks afterwards, in a
-- statement of its own, that the limits still exist.
create function sluice.hold_limits(p_limits int[]) returns void language plpgsql as $$
begin
  -- guard: a group in use is not forgotten -> test/postgres/forget.test.ts: "a group is not forgotten while an open transaction has enqueued a task of it"
  perform pg_advisory_xact_lock_shared('sluice.limits'::regclass::oid::int, x.bucket) from (
    select distinct sluice.limit_bucket(l.id) as bucket from sluice.limits l
    where l.id = any (p_limits) and l.transient order by 1) x;
end $$;

-- Which of the advisory locks a group has. Number 0 is the barrier.
create function sluice.limit_bucket(p_limit int) returns int language sql immutable parallel safe as
$$ select 1 + p_limit % 32 $$;

-- Tasks with an order key or limits. Keys become lanes, totals become the gate. p_window: the lane of a fan-out's
-- window, which comes before keys: an item that waits there keeps none of the slots that others want.
create function sluice.insert_placed(
  p_stream int, p_rank smallint, p_attempts smallint, p_ids bigint[], p_inputs json[], p_limits int[], p_keys text, p_orders text,
  p_order_blocks boolean, p_later timestamptz, p_fresh boolean[], p_traces text[], p_window bigint default null, p_window_name text default null)
returns void language plpgsql set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_count int := cardinality(p_ids);
  v_keys text[] := string_to_array(p_keys, E'\x1e');
  v_orders text[] := string_to_array(p_orders, E'\x1e', '');
  v_known boolean; v_totals int[]; v_keyed int[]; v_gate int;
begin
  if cardinality(p_limits) > 8 then perform sluice.refuse('invalid_option', 'a task has at most 8 limits'); end if;
  perform sluice.hold_limits(p_limits);
  select count(*) = count(l.id), array_agg(distinct l.id order by l.id) filter (where l.total_declared is not null),
    array_agg(l.id order by u.n) filter (where l.per_key_declared is not null)
  into v_known, v_totals, v_keyed
  from unnest(p_limits) with ordinality u(id, n) left join sluice.limits l on l.id = u.id;
  if not v_known then perform sluice.refuse('unknown_limit', 'no such limit'); end if;
  v_gate := sluice.gate_of(v_totals);
  if v_orders is not null and cardinality(v_orders) <> v_count or v_keys is not null and cardinality(v_keys) <> v_count then
    perform sluice.refuse('key_missing', 'every task needs its keys'); end if;
  if v_keyed is not null and v_keys is null then perform sluice.refuse('key_missing', 'a limit per key needs a key'); end if;
  -- Ignored, it would let the task past a limit that its sender believes in.
  if v_keyed is null and v_keys is not null then perform sluice.refuse('limit_shape', 'a key was given, but none of the limits is per key'); end if;
  if v_keyed is null and v_orders is null and p_window is null then
    perform sluice.insert_plain(p_stream, p_rank, p_attempts, p_ids, p_inputs, v_gate, p_later, p_fresh, p_traces);
    return;
  end if;
  perform sluice.insert_laned(p_stream, p_rank, p_attempts, v_gate, p_ids, p_inputs, p_later, p_fresh, v_orders, v_keys,
    v_keyed, case when p_order_blocks then -1 else 0 end, (select value from sluice.setting where name = 'lane_secret'),
    (select unserved from sluice.stream where id = p_stream), p_traces, p_window, p_window_name);
end $$;

create function sluice.insert_laned(
  p_stream int, p_rank smallint, p_attempts smallint, p_gate int, p_ids bigint[], p_inputs json[], p_later timestamptz, p_fresh boolean[],
  p_orders text[], p_keys text[], p_keyed int[], p_order_limit int, p_secret text, p_unserved boolean, p_traces text[], p_window bigint default null, p_window_name text default null)
returns void language plpgsql set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  with item as materialized (
    select u.id, u.input, u.order_key, u.trace,
      case when u.order_key is not null then array[sluice.lane_id(1, u.order_key, p_secret)] end
        || case when p_window is not null then array[p_window] end || k.lanes as lanes,
      case when u.order_key is not null then array[p_order_limit] end
        || case when p_window is not null then array[-2] end || k.limits as lane_limits,
      case when u.order_key is not null then array[u.order_key] end
        || case when p_window is not null then array[p_window_name] end || k.names as lane_keys,
      k.bad
    from unnest(p_ids, p_inputs, p_orders, p_keys, p_fresh, p_traces) u(id, input, order_key, keys, fresh, trace)
    left join lateral (
      -- By limit, each lane once: a lane twice in one task would wait for itself for ever.
      select array_agg(lane order by limit_id, lane) as lanes, array_agg(limit_id order by limit_id, lane) as limits,
        array_agg(key order by limit_id, lane) as names,
        count(*) <> count(distinct lane) or bool_or(key is null or key = '') or count(*) <> cardinality(string_to_array(u.keys, E'\x1f')) as bad
      from (select limit_id, key, sluice.lane_id(3, limit_id || E'\x1f' || key, p_secret) as lane
        from unnest(p_keyed, string_to_array(u.keys, E'\x1f')) x(limit_id, key)) y
    ) k on p_keyed is not null
    where u.fresh is not false
  ), parked as (
    -- Not with an order key: it must stand in that line, or a later one of its key would overtake it.
    insert into sluice.park (id, stream, gate, rank, attempt, held) select id, p_stream, p_gate, p_rank, 0, 0 from item
    where p_later is null and p_unserved and lanes[1] >> 60 > 1
  ), tasks as (
    insert into sluice.task (id, stream, rank, attempts_max, gate, lanes, lane_limits, lane_keys, input, trace, due_at)
    select id, p_stream, p_rank, p_attempts, p_gate, lanes, lane_limits, lane_keys,
      case when bad then sluice.refuse_keys() else input end, trace, p_later from item
  ), later as (
    insert into sluice.scheduled (id, run_at, attempt, held) select id, p_later, 0, 0 from item where p_later is not null
  ), readies as (
    insert into sluice.ready (id, stream, rank, attempt, turn) select id, p_stream, p_rank, 0, sluice.own_turn(id) from item
    where p_later is null and lanes is null and p_gate = 0
  ), gates as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn) select id, p_stream, p_gate, p_rank, 0, sluice.own_turn(id) from item
    where p_later is null and lanes is null and p_gate <> 0
  ), waits as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[1], sluice.lane_place(lanes[1], p_rank), p_rank, 0, 0, p_stream, p_gate, lanes, lane_limits from item
    where p_later is null and lanes is not null and not (p_unserved and lanes[1] >> 60 > 1)
  )
  insert into sluice.dirty (lane, limit_id)
  select lanes[1], max(lane_limits[1]) from item
  where p_later is null and lanes is not null and not (p_unserved and lanes[1] >> 60 > 1) group by 1;
end $$;

create function sluice.refuse_keys() returns json language plpgsql as $$
begin
  perform sluice.refuse('key_missing', 'every limit per key needs exactly one non-empty key, and no key twice');
end $$;

-- Takes idempotency keys: the first enqueue of a key keeps it, a later one gets its task's id back.
-- The unique index makes concurrent holders of one key wait for each other; workers never touch it.
create function sluice.claim_keys(p_stream int, p_ids bigint[], p_keys text[], p_inputs json[], p_ms bigint, out ids bigint[], out fresh boolean[])
language plpgsql as $$
begin
  select k.ids, k.fresh into ids, fresh from sluice.claim_keys_of((select type from sluice.stream where id = p_stream), p_ids, p_keys, p_inputs, p_ms) k;
end $$;

-- Takes the keys that nobody has, in their order; of one that is given twice the first task gets it. Returns how many.
create function sluice.take_keys(p_type text, p_ids bigint[], p_keys text[], p_inputs json[], p_until timestamptz) returns int language plpgsql as $$
declare v_n int;
begin
  insert into sluice.idempotency (type, key, id, digest, expires_at)
  select distinct on (u.key) p_type, u.key, u.id, md5(u.input::jsonb::text), p_until
  from unnest(p_ids, p_keys, p_inputs) u(id, key, input) where u.key <> '' order by u.key, u.id
  on conflict do nothing;
  get diagnostics v_n = row_count;
  return v_n;
end $$;

create function sluice.claim_keys_of(p_type text, p_ids bigint[], p_keys text[], p_inputs json[], p_ms bigint, out ids bigint[], out fresh boolean[])
language plpgsql as $$
declare v_type text := p_type; v_now timestamptz := sluice.clock(); v_until timestamptz := v_now + p_ms * interval '1 millisecond';
  v_key text; v_id bigint;
begin
  if cardinality(p_keys) <> cardinality(p_ids) then perform sluice.refuse('invalid_key', 'every task needs its idempotency key'); end if;
  -- New keys are the rule, and nothing is read for them: two SERIALIZABLE transactions with keys of their own would
  -- otherwise have read what the other wrote, and one of them would fail.
  -- guard: new keys are not read -> test/postgres/attacks.test.ts: "serializable transactions with new idempotency keys do not conflict"
  if sluice.take_keys(v_type, p_ids, p_keys, p_inputs, v_until) = cardinality(array_remove(p_keys, '')) then
    ids := p_ids;
    fresh := array_fill(true, array[cardinality(p_ids)]);
    return;
  end if;
  -- In the order in which they are taken, so that two of these cannot wait for each other.
  delete from sluice.idempotency where ctid = any (array(
    select i.ctid from sluice.idempotency i where i.type = v_type and i.key = any (p_keys) and i.expires_at <= v_now order by i.key for update));
  if found then perform sluice.take_keys(v_type, p_ids, p_keys, p_inputs, v_until); end if;
  select i.key, i.id into v_key, v_id from unnest(p_keys, p_inputs) u(key, input) join sluice.idempotency i on i.type = v_type and i.key = u.key
  where u.key <> '' and i.digest <> md5(u.input::jsonb::text) limit 1;
  if found then
    -- A workflow takes keys under a name that no task can have: see workflow_start.
    perform sluice.refuse('idempotency_conflict', case when v_type like E'\x1fworkflow\x1f%'
      then format('idempotency key %L of workflow %L was already used with another input, by run %s', v_key, split_part(v_type, E'\x1f', 3), v_id)
      else format('idempotency key %L of %L was already used with another input, by task %s', v_key, v_type, v_id) end);
  end if;
  select array_agg(coalesce(i.id, u.id) order by u.n), array_agg(i.id is null or i.id = u.id order by u.n) into ids, fresh
  from unnest(p_ids, p_keys) with ordinality u(id, key, n)
  left join sluice.idempotency i on u.key <> '' and i.type = v_type and i.key = u.key;
end $$;

-- A number given with a group at enqueue counts only where nobody has set one: neither the code nor
-- an operator, who may have lifted the limit on purpose.
create function sluice.fill_limit(p_limit int, p_total int) returns void language plpgsql as $$
begin
  if not exists (select from sluice.limits where id = p_limit and total_declared = 2147483647 and total_override is null) then return; end if;
  perform sluice.barrier_alone();
  update sluice.limits set total_declared = p_total where id = p_limit and total_declared = 2147483647 and total_override is null;
  if found then perform sluice.apply_limit(p_limit); end if;
end $$;

-- What the client refuses of an input, for those who come without it. jsonb knows what json lets
-- through: NUL and lone surrogates, which no reader of jsonb could look at.
create function sluice.check_input(p_input json) returns void language plpgsql as $$
begin
  if octet_length(p_input::text) > 1048576 then perform sluice.refuse('input_too_large', 'the input is larger than 1 MiB'); end if;
  perform p_input::jsonb;
exception when data_exception or program_limit_exceeded then
  perform sluice.refuse('input_not_storable', 'the input cannot be stored: ' || sqlerrm);
end $$;

-- The door for triggers and other languages:
--   select sluice.enqueue('send-invoice', '{"id": 7}', order_key => 'account-1', keys => '{"tenant": "acme"}');
-- It knows which keys the type needs and refuses when one is missing. traceparent: a W3C trace context for the
-- runs to link to; one that is none is left out, because a trace is never worth a task.
create function sluice.enqueue(
  type text, input json default 'null', order_key text default null, keys jsonb default '{}', queue text default null,
  priority int default null, run_at timestamptz default null, idempotency_key text default null,
  traceparent text default null)
returns bigint language plpgsql as $$
#variable_conflict use_variable
declare v sluice.contract; v_stream int; v_keys text; v_missing text; v_unknown text; v_name text;
begin
  if input is null then input := 'null'; end if;
  if jsonb_typeof(keys) <> 'object' then perform sluice.refuse('invalid_option', 'keys must be an object of limit names and keys'); end if;
  select * into v from sluice.contract c where c.type = type;
  if not found then perform sluice.refuse('unknown_task', format('no worker or client has declared a task type %L', type)); end if;
  if v.limit_ids is null then
    perform sluice.refuse('limits_in_code', format('task type %L decides its limits in code: enqueue it through the client, or declare them as a list', type));
  end if;
  if v.ordered and coalesce(order_key, '') = '' then perform sluice.refuse('key_missing', format('task type %L needs an order_key', type)); end if;
  if not v.ordered and order_key is not null then perform sluice.refuse('invalid_option', format('task type %L has no order', type)); end if;
  foreach v_name in array array_remove(array[order_key, idempotency_key] || array(select value from jsonb_each_text(keys)), null) loop
    if v_name ~ '[\u0001-\u001f\u007f-\u009f]' or length(v_name) not between 1 and 512 then
      perform sluice.refuse('invalid_key', 'a key has 1 to 512 characters and no control characters'); end if;
  end loop;
  select string_agg(l.name, ', ') into v_missing from unnest(v.limit_ids) u(id) join sluice.limits l on l.id = u.id
  where l.per_key_declared is not null and coalesce(keys ->> l.name, '') = '';
  if v_missing is not null then perform sluice.refuse('key_missing', format('task type %L needs a key for limit %s', type, v_missing)); end if;
  select string_agg(k, ', ') into v_unknown from jsonb_object_keys(keys) k
  where not exists (select from sluice.limits l where l.id = any (v.limit_ids) and l.name = k and l.per_key_declared is not null);
  if v_unknown is not null then perform sluice.refuse('unknown_limit', format('task type %L has no limit per key named %s', type, v_unknown)); end if;
  perform sluice.check_input(input);
  -- Infinity would never be due, and nobody can say how long to wait for it.
  if run_at not between sluice.clock() - interval '100 years' and sluice.clock() + interval '100 years' then perform sluice.refuse('invalid_option', 'run_at must be within a hundred years'); end if;
  select id into v_stream from sluice.stream s where s.queue = coalesce(queue, v.queue) and s.type = type;
  if not found then perform sluice.refuse('unknown_queue', format('task type %L was never declared on queue %L', type, queue)); end if;
  select string_agg(keys ->> l.name, E'\x1f' order by u.n) into v_keys
  from unnest(v.limit_ids) with ordinality u(id, n) join sluice.limits l on l.id = u.id where l.per_key_declared is not null;
  return (select (e.ids)[1] from sluice.enqueue_many(v_stream, coalesce(priority, v.priority), v.attempts_max, input::text,
    nullif(v.limit_ids, '{}'), v_keys, case when v.ordered then coalesce(v.order_scope || E'\x1f', '') || order_key end,
    v.order_blocks, run_at, idempotency_key,
    p_trace => case when traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' then traceparent end) e);
end $$;
