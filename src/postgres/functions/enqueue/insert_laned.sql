-- Inserts tasks that may have lanes: order keys, a window, keys of limits. Takes no lock; a note for each lane that a
-- task joins (dirty) lets a claim admit it. A task without lanes becomes ready or gated. p_keyed: the limits that
-- p_keys, per task, has keys for. p_order_limit: the limit id of order lanes (order_limit or blocking_limit).
-- p_unserved: no worker serves the stream, so tasks that would join a limit's line first are parked.
-- Refuses keys that do not fit the limits.
create or replace function sluice.insert_laned(
  p_stream int, p_rank smallint, p_attempts smallint, p_gate int, p_ids bigint[], p_inputs json[],
  p_later timestamptz, p_fresh boolean[], p_orders text[], p_keys text[], p_keyed int[], p_order_limit int,
  p_secret text, p_unserved boolean, p_traces text[], p_window bigint default null, p_window_name text default null)
returns void language plpgsql /* settings: kept plans */ as $$
begin
  with item as materialized (
    -- Refused here, before anything is inserted: a lane without a key is null.
    select u.id, case when k.bad then sluice.refuse_keys() else u.input end as input, u.order_key, u.trace,
      case when u.order_key is not null then array[sluice.lane_id(sluice.order_level(), u.order_key, p_secret)] end
        || case when p_window is not null then array[p_window] end || k.lanes as lanes,
      case when u.order_key is not null then array[p_order_limit] end
        || case when p_window is not null then array[sluice.window_limit()] end || k.limits as lane_limits,
      case when u.order_key is not null then array[u.order_key] end
        || case when p_window is not null then array[p_window_name] end || k.names as lane_keys
    from unnest(p_ids, p_inputs, p_orders, p_keys, p_fresh, p_traces) u(id, input, order_key, keys, fresh, trace)
    left join lateral (
      -- By limit, each lane once: a task with one lane twice would wait for itself for ever.
      select array_agg(lane order by limit_id, lane) as lanes,
        array_agg(limit_id order by limit_id, lane) as limits,
        array_agg(key order by limit_id, lane) as names,
        /* guard:distinct */ count(*) <> count(distinct lane) or /* end */
        /* guard:keyless */ bool_or(key is null or key = '') or /* end */
        count(*) <> cardinality(string_to_array(u.keys, E'\x1f')) as bad
      from (
        select limit_id, key,
          sluice.lane_id(
            sluice.key_level(), /* guard:limit-name */ limit_id || E'\x1f' || /* end */ key, p_secret) as lane
        from unnest(p_keyed, string_to_array(u.keys, E'\x1f')) x(limit_id, key)) y
    ) k on p_keyed is not null
    where u.fresh is not false
  ), parked as (
    -- Not with an order key: it must stand in that line, or a later task of its key would overtake it.
    insert into sluice.parked (id, stream, gate, rank, attempt, held)
    select id, p_stream, p_gate, p_rank, 0, 0 from item
    where p_later is null and p_unserved
      and sluice.lane_level(lanes[/* guard:order-waits */ 1 /* end */]) > sluice.order_level()
  ), tasks as (
    insert into sluice.task (id, stream, rank, attempts_max, gate, lanes, lane_limits, lane_keys, input, trace, due_at)
    select id, p_stream, p_rank, p_attempts, p_gate, lanes, lane_limits, lane_keys,
      input, trace, p_later from item
  ), later as (
    insert into sluice.scheduled (id, run_at, attempt, held)
    select id, p_later, 0, 0 from item where p_later is not null
  ), readies as (
    insert into sluice.ready (id, stream, rank, attempt, turn)
    select id, p_stream, p_rank, 0, sluice.own_turn(id) from item
    where p_later is null and lanes is null and p_gate = 0
  ), gates as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn)
    select id, p_stream, p_gate, p_rank, 0, sluice.own_turn(id) from item
    where p_later is null and lanes is null and p_gate <> 0
  ), waits as (
    insert into sluice.waiting (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[1], sluice.lane_place(lanes[1], p_rank), p_rank, 0, 0, p_stream, p_gate, lanes, lane_limits
    from item
    where p_later is null and lanes is not null
      and not (p_unserved and sluice.lane_level(lanes[/* guard:order-waits */ 1 /* end */]) > sluice.order_level())
  )
  insert into sluice.dirty (lane, limit_id)
  select lanes[1], max(lane_limits[1]) from item
  where /* guard:note */ p_later is null and lanes is not null
    and not (
      p_unserved
      and sluice.lane_level(lanes[/* guard:order-waits */ 1 /* end */]) > sluice.order_level()) /* end */
  group by 1;
end $$;
