-- Returns what a task meets at its lane of index p_at; empty if there is a slot for it. p_here: the task waits in that
-- line now. Otherwise it will later, and only a full lane counts. p_deep: as in explain.
create or replace function sluice.explain_lane(p_task sluice.task, p_at int, p_here boolean, p_deep boolean)
returns json[]
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_lane bigint := p_task.lanes[p_at];
  v_level int := sluice.lane_level(v_lane);
  v_limit int := p_task.lane_limits[p_at];
  v_key text := p_task.lane_keys[p_at];
  v_used int;
  v_cap int;
  v_before int;
  v_holders json;
  v_shut json[] := '{}';
  n record;
begin
  select l.used, l.cap into v_used, v_cap from sluice.lane l where l.id = v_lane;
  v_cap := coalesce(v_cap, sluice.lane_cap(v_lane, v_limit));
  -- Without slots that came back in a note that no claim has read yet.
  v_used := greatest(0, coalesce(v_used, 0) - coalesce((
    select sum(d.freed) from sluice.dirty d where d.lane = v_lane and /* guard:freed */ d.freed > 0 /* end */), 0));
  if v_level = sluice.window_level() then
    select * into n from sluice.explain_node(v_lane);
    if n.stopping and n.live then return array[json_build_object('kind', 'stopping', 'run', n.run::text)]; end if;
    if n.paused and n.live then
      v_shut := array[json_build_object('kind', 'paused', 'what', 'run', 'name', n.run::text)];
    end if;
    -- The window of a node that has ended stops nothing.
    v_cap := case when n.live then n.window_size else sluice.no_limit() end;
  end if;
  if not p_here and v_used < v_cap then return v_shut; end if;
  if p_here then
    v_before := (
      select count(*)
      from (
        select from sluice.waiting w
        where w.lane = v_lane and (w.place, w.id) < (sluice.lane_place(v_lane, p_task.rank), p_task.id)
        limit 10000) x);
    -- The next claim hands the free slots to the first in line.
    if /* guard:before */ v_before < v_cap - v_used /* end */ then return v_shut; end if;
  end if;
  v_holders := sluice.explain_holders(v_lane, least(v_used + 1, 11), p_task.id, p_deep);
  if v_level = sluice.order_level() then
    -- A scope stands before its key.
    return array[json_build_object(
      'kind', case when v_holders -> 0 ->> 'state' = 'failed' then 'blocked' else 'order' end,
      'key', split_part(v_key, E'\x1f', -1),
      'scope', case when v_key like E'%\x1f%' then split_part(v_key, E'\x1f', 1) end,
      'before', v_before, 'holder', v_holders -> 0)];
  end if;
  if v_level = sluice.key_level() then
    return array[json_build_object(
      'kind', 'limit', 'limit', (select l.name from sluice.limits l where l.id = v_limit), 'key', v_key,
      'slots', v_cap, 'used', v_used, 'before', v_before, 'holders', v_holders)];
  end if;
  return v_shut || json_build_object(
    'kind', 'window', 'run', n.run::text, 'node', n.name,
    'slots', n.window_size, 'used', v_used, 'before', v_before, 'holders', v_holders);
end $$;
