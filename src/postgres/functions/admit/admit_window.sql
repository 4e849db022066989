-- Slots of one window were freed, and no task joined it: what almost every step of a fan-out comes to. An item that
-- goes is replaced, so the row of the lane mostly stays as it is. The same steps as for other lanes (admit_level).
-- Returns the lanes that items with keys want next, with their limits, and the streams of tasks with no lane left.
create or replace function sluice.admit_window(p_lane bigint, p_freed int,
  out lanes bigint[], out limits int[], out streams int[])
language plpgsql as $$
#variable_conflict use_column
declare v_used int; v_room int; v_taken int; v_more boolean;
begin
  -- guard: window lock -> test/postgres/workflow/races.test.ts: "two sessions that free slots of one window at once lose none"
  select n.used into v_used from sluice.lane n where n.id = p_lane /* guard:lock */ for update /* end */;
  if not found then return; end if;
  -- It may have been shut by a failure, in this very transaction too.
  -- guard: a failure shuts the window -> test/postgres/workflow/races.test.ts: "a failFast fan-out starts no further item after its first failure"
  v_room := greatest(0, /* guard:shut */ sluice.lane_cap(p_lane, sluice.window_limit()) /* end */ - v_used + p_freed);
  with moved as (
    delete from sluice.waiting where ctid = any (array(
      select ctid from sluice.waiting where lane = p_lane
      order by place, id limit least(v_room, sluice.moves_max()) for update skip locked))
    returning id, stream, gate, rank, attempt, held + 1 as held, lanes, lane_limits, late, turn as had,
      held + 1 = cardinality(lanes) as through
  ), passed as (
    select *, coalesce(had, sluice.next_turn((select last_value from sluice.task_id))) as turn
    from (select * from moved where through order by id) m
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes, late)
    select id, stream, rank, attempt, turn, lanes, nullif(late, 0) from passed where gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes, late)
    select id, stream, gate, rank, attempt, turn, lanes, nullif(late, 0) from passed where gate <> 0
  ), to_waiting as (
    insert into sluice.waiting (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, late, turn)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, attempt, held, stream, gate,
      lanes, lane_limits, late, had from moved where not through
  )
  select count(*), array_agg(lanes[held + 1]) filter (where not through),
    array_agg(lane_limits[held + 1]) filter (where not through), array_agg(distinct stream) filter (where through)
  into v_taken, lanes, limits, streams from moved;
  if v_taken = p_freed and v_taken = v_room then return; end if;

  v_used := v_used + v_taken - p_freed;
  v_more := (v_taken < v_room or v_used <= 0) and exists (select from sluice.waiting where lane = p_lane);
  -- Seen but not taken: more than we move at once, or locked by a transaction that may yet abort.
  if v_more and v_taken < least(v_room, sluice.moves_max()) then
    perform sluice.postpone(array[p_lane], array[sluice.window_limit()]);
  elsif v_more and v_taken < v_room then
    insert into sluice.dirty (lane, limit_id) values (p_lane, sluice.window_limit());
  end if;
  if v_used <= 0 and not v_more then
    delete from sluice.lane where id = p_lane;
  else
    update sluice.lane set used = v_used where id = p_lane;
  end if;
end $$;
