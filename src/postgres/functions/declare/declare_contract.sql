-- Declares a task type and returns its stream. Its shape follows the newest deploy. p_concurrency, its own limit (null
-- for none), counts only when the type has none yet, or with p_sync. Takes the barrier exclusively if the limit may
-- change.
create or replace function sluice.declare_contract(
  p_type text, p_queue text, p_priority int, p_attempts int,
  p_ordered boolean, p_order_scope text, p_order_blocks boolean,
  p_limit_ids int[], p_concurrency int, p_sync boolean default false)
returns int language plpgsql as $$
declare
  v_gate int;
  v_old int;
  v_stream int;
begin
  -- Before any row lock, as everywhere: giving a type its limit, or taking it away, needs the barrier.
  select gate into v_old from sluice.contract where type = p_type;
  if p_sync or p_concurrency is not null and coalesce(v_old, 0) = 0 then perform sluice.barrier_exclusive(); end if;
  if p_concurrency is not null then v_gate := sluice.declare_limit(p_type, p_concurrency, null, p_sync); end if;
  insert into sluice.contract as c (
    type, queue, priority, attempts_max, ordered, order_scope, order_blocks, limit_ids)
  values (p_type, p_queue, p_priority, p_attempts, p_ordered, p_order_scope, p_order_blocks, p_limit_ids)
  on conflict (type) do update set
    queue = excluded.queue, priority = excluded.priority, attempts_max = excluded.attempts_max,
    ordered = excluded.ordered, order_scope = excluded.order_scope, order_blocks = excluded.order_blocks,
    limit_ids = excluded.limit_ids
  where (c.queue, c.priority, c.attempts_max, c.ordered, c.order_scope, c.order_blocks, c.limit_ids)
    is distinct from (
      excluded.queue, excluded.priority, excluded.attempts_max, excluded.ordered, excluded.order_scope,
      excluded.order_blocks, excluded.limit_ids);
  v_stream := sluice.declare_stream(p_queue, p_type);
  select gate into v_old from sluice.contract where type = p_type;
  if p_sync and v_old <> coalesce(v_gate, 0) then
    perform sluice.set_stream_gate(p_type, coalesce(v_gate, 0));
  elsif v_gate is not null and v_old = 0 then
    perform sluice.give_stream_gate(p_type);
  end if;
  perform sluice.declare_use(v_stream, p_limit_ids);
  return v_stream;
end $$;
