-- Inserts tasks with an order key, limits or a window. Keys become lanes, totals become the gate. p_window: the lane of
-- a fan-out's window. It comes before keys, so that an item that waits there holds no slot that others want.
create or replace function sluice.insert_limited(
  p_stream int, p_rank smallint, p_attempts smallint, p_ids bigint[], p_inputs json[],
  p_limits int[], p_keys text, p_orders text, p_order_blocks boolean,
  p_later timestamptz, p_fresh boolean[], p_traces text[],
  p_window bigint default null, p_window_name text default null)
returns void language plpgsql /* settings: kept plans */ as $$
declare
  v_count int := cardinality(p_ids);
  v_keys text[] := string_to_array(p_keys, E'\x1e');
  v_orders text[] := string_to_array(p_orders, E'\x1e', '');
  v_known boolean;
  v_totals int[];
  v_keyed int[];
  v_gate int;
begin
  if cardinality(p_limits) > 8 then perform sluice.refuse('invalid_option', 'a task can have at most 8 limits'); end if;
  perform sluice.hold_limits(p_limits);
  select count(*) = count(l.id),
    array_agg(distinct l.id order by l.id) filter (where l.total_declared is not null),
    array_agg(l.id order by u.n) filter (where l.per_key_declared is not null)
  into v_known, v_totals, v_keyed
  from unnest(p_limits) with ordinality u(id, n)
  left join sluice.limits l on l.id = u.id;
  if /* guard:limits */ not /* end */ v_known then
    perform sluice.refuse('unknown_limit', 'one of the limits does not exist');
  end if;
  v_gate := sluice.gate_of(v_totals);
  if /* guard:orders */ v_orders /* end */ is not null and cardinality(v_orders) <> v_count
      or v_keys is not null and cardinality(v_keys) <> v_count then
    perform sluice.refuse('key_missing', 'every task needs its own order key and limit keys');
  end if;
  if v_keyed is not null and v_keys is null then
    perform sluice.refuse('key_missing', 'a limit per key needs a key');
  end if;
  -- A key that is ignored would let the task past a limit that its sender relies on.
  if v_keyed is null and v_keys is not null then
    perform sluice.refuse('limit_shape', 'a key was given, but none of the limits is per key: remove the key');
  end if;
  if v_keyed is null and v_orders is null and p_window is null then
    perform sluice.insert_plain(
      p_stream, p_rank, p_attempts, p_ids, p_inputs, v_gate, p_later, p_fresh, p_traces);
    return;
  end if;
  perform sluice.insert_laned(
    p_stream, p_rank, p_attempts, v_gate, p_ids, p_inputs, p_later, p_fresh, v_orders, v_keys, v_keyed,
    case when p_order_blocks then sluice.blocking_limit() else sluice.order_limit() end,
    (select value from sluice.setting where name = 'lane_secret'),
    (select unserved from sluice.stream where id = p_stream),
    p_traces, p_window, p_window_name);
end $$;
