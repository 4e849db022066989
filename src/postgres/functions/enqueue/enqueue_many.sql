-- Enqueues tasks of one stream. It only inserts: no lane lock and no unique upsert, except for idempotency keys, so a
-- user's transaction that stays open for minutes blocks no worker.
--
-- Lists of texts arrive as one string, records separated by U+001E and fields by U+001F, which neither JSON text nor a
-- checked key can contain: three times cheaper than an array in the driver.
-- p_limits: the limits of every task, in order. p_keys: per task, a key for each of those limits that has a number per
-- key. p_orders, p_idempotency: per task, '' for none. p_trace: one for all tasks, or one per task and '' for none.
-- ids: the task of each input. existed: whether that task existed already; null without idempotency keys.
create or replace function sluice.enqueue_many(
  p_stream int, p_priority int, p_attempts int, p_inputs text,
  p_limits int[] default null, p_keys text default null,
  p_orders text default null, p_order_blocks boolean default false,
  p_run_at timestamptz default null,
  p_idempotency text default null, p_idempotency_ms bigint default 86400000,
  p_delay_ms bigint default null, p_trace text default null,
  out ids bigint[], out existed boolean[])
language plpgsql /* settings: kept plans */ as $$
declare
  v_inputs json[] := string_to_array(p_inputs, E'\x1e')::json[];
  v_count int := cardinality(v_inputs);
  v_rank smallint;
  v_run_at timestamptz := coalesce(p_run_at, sluice.clock() + p_delay_ms * interval '1 millisecond');
  v_later timestamptz := case when v_run_at > sluice.clock() then v_run_at end;
  v_fresh boolean[];
  v_traces text[] := string_to_array(p_trace, E'\x1e', '');
begin
  -- guard: the door -> test/postgres/attacks.test.ts: "attack 6: invalid lanes are refused at enqueue"
  if /* guard:priority */ p_priority /* end */ is null or p_priority not between -32000 and 32000 then
    perform sluice.refuse('invalid_option', 'priority must be an integer from -32000 to 32000');
  end if;
  v_rank := -p_priority;
  if /* guard:attempts */ p_attempts is null or /* end */ p_attempts not between 1 and 32000 then
    perform sluice.refuse('invalid_option', 'attempts must be an integer from 1 to 32000');
  end if;
  if cardinality(v_traces) = 1 then v_traces := array_fill(v_traces[1], array[v_count]); end if;
  select array(select nextval('sluice.task_id') from generate_series(1, v_count)) into ids
  from sluice.stream where id = p_stream;
  if not found then perform sluice.refuse('unknown_queue', 'this type was never declared on this queue'); end if;
  if p_idempotency is not null then
    select f.ids, f.fresh into ids, v_fresh
    from sluice.claim_keys(p_stream, ids, string_to_array(p_idempotency, E'\x1e'), v_inputs, p_idempotency_ms) f;
    existed := array(select not f from unnest(v_fresh) f);
  end if;
  if p_limits is null and p_orders is null then
    perform sluice.insert_plain(
      p_stream, v_rank, p_attempts::smallint, ids, v_inputs, 0, v_later, v_fresh, v_traces);
  else
    perform sluice.insert_limited(
      p_stream, v_rank, p_attempts::smallint, ids, v_inputs, p_limits, p_keys, p_orders, p_order_blocks,
      v_later, v_fresh, v_traces);
  end if;
  -- guard: what is due later is looked at in time -> test/postgres/keeper.test.ts: "only a task that is due before the leader's next check notifies the leader"
  if v_later is not null then
    /* guard:look */ perform sluice.poll_by(v_later) /* end */;
  elsif exists (select from sluice.worker where asleep) then
    perform sluice.ring(array[p_stream], v_count);
  end if;
end $$;
