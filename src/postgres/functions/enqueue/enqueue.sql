-- Enqueues one task, from a trigger or another language, and returns its id:
--   select sluice.enqueue('send-invoice', '{"id": 7}', order_key => 'account-1', keys => '{"tenant": "acme"}');
-- It knows which keys the type needs and refuses when one is missing. traceparent: a W3C trace context for the
-- runs to link to; an invalid one is ignored, because a trace is never worth a task.
create or replace function sluice.enqueue(
  type text, input json default 'null', order_key text default null, keys jsonb default '{}',
  queue text default null, priority int default null, run_at timestamptz default null,
  idempotency_key text default null, traceparent text default null)
returns bigint language plpgsql as $$
#variable_conflict use_variable
declare
  v sluice.contract;
  v_stream int;
  v_keys text;
begin
  if input is null then input := 'null'; end if;
  if jsonb_typeof(keys) <> 'object' then
    perform sluice.refuse('invalid_option', 'keys must be a JSON object that maps names of limits to keys');
  end if;
  select * into v from sluice.contract c where c.type = type;
  if not found then
    perform sluice.refuse('unknown_task', format('no worker or client has declared a task type %L', type));
  end if;
  if v.limit_ids is null then
    perform sluice.refuse('limits_in_code', format(
      'task type %L computes its limits in code: enqueue it with the client, or declare its limits as a list', type));
  end if;
  perform sluice.check_keys(v, order_key, keys, idempotency_key);
  perform sluice.check_input(input);
  -- A task due at infinity would never run, and nothing can compute how long to wait for it.
  if run_at not between sluice.clock() - interval '100 years' and sluice.clock() + interval '100 years' then
    perform sluice.refuse('invalid_option', 'run_at must be within 100 years from now');
  end if;
  select id into v_stream from sluice.stream s where s.queue = coalesce(queue, v.queue) and s.type = type;
  if not found then
    perform sluice.refuse('unknown_queue', format('task type %L was never declared on queue %L', type, queue));
  end if;
  select string_agg(keys ->> l.name, E'\x1f' order by u.n) into v_keys
  from unnest(v.limit_ids) with ordinality u(id, n)
  join sluice.limits l on l.id = u.id
  where l.per_key_declared is not null;
  return (
    select (e.ids)[1]
    from sluice.enqueue_many(
      v_stream, coalesce(priority, v.priority), v.attempts_max, input::text, nullif(v.limit_ids, '{}'), v_keys,
      case when v.ordered then coalesce(v.order_scope || E'\x1f', '') || order_key end,
      v.order_blocks, run_at, idempotency_key,
      p_trace => case
        when traceparent ~ '^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$' then traceparent
      end) e);
end $$;
