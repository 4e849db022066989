-- Enqueues one task per tick, in the order of the ticks, and returns their ids. p_ticks: times as text, which replace
-- the mark p_mark in the input. p_once: enqueue no tick twice, even if the schedule was removed and set again and the
-- clock set back in between; idempotency keys ensure that. They begin with a control character, which users' keys
-- cannot contain.
create or replace function sluice.enqueue_ticks(
  p_schedule sluice.schedule, p_ticks text[], p_mark text, p_once boolean)
returns bigint[] language plpgsql as $$
declare
  v_prefix text := E'\x1f' || (p_schedule).name || E'\x1f';
  v_type text := (select type from sluice.stream where id = (p_schedule).stream);
  v_now timestamptz := sluice.clock();
  v_limits int[];
  v_keys text;
  v_n int;
  v_inputs text;
  v_once text;
begin
  if p_once then
    p_ticks := array(
      select u.tick
      from unnest(p_ticks) with ordinality u(tick, n)
      where not exists (
        select from sluice.idempotency i
        where i.type = v_type and i.key = v_prefix || u.tick and i.expires_at > v_now)
      order by u.n);
    v_once := (
      select string_agg(v_prefix || u.tick, E'\x1e' order by u.n)
      from unnest(p_ticks) with ordinality u(tick, n));
  end if;
  v_n := cardinality(p_ticks);
  if v_n = 0 then return '{}'; end if;
  -- A limit that was removed limits nothing, as for tasks that still carry it.
  select array_agg(l.id order by u.n),
    string_agg(u.key, E'\x1f' order by u.n) filter (where l.per_key_declared is not null)
  into v_limits, v_keys
  from unnest((p_schedule).limit_names, (p_schedule).limit_keys) with ordinality u(name, key, n)
  join sluice.limits l on l.name = u.name;
  v_inputs := (
    select string_agg(
      replace((p_schedule).input::text, to_json(p_mark)::text, to_json(u.tick)::text), E'\x1e' order by u.n)
    from unnest(p_ticks) with ordinality u(tick, n));
  return (
    select e.ids
    from sluice.enqueue_many(
      (p_schedule).stream, (p_schedule).priority, (p_schedule).attempts, v_inputs, v_limits,
      case when v_keys is not null then array_to_string(array_fill(v_keys, array[v_n]), E'\x1e') end,
      case when (p_schedule).order_key is not null
        then array_to_string(array_fill((p_schedule).order_key, array[v_n]), E'\x1e') end,
      (p_schedule).order_blocks, null, v_once) e);
end $$;
