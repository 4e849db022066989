-- Admits to lanes of one level, windows or keys of limits: births, then locks, then hands on, each in a
-- statement of its own. Returns the lanes that the tasks which moved want next, with their limits, and the streams of
-- tasks with no lane left.
create or replace function sluice.admit_level(p_level int, p_new bigint[], p_new_limits int[], p_freed bigint[],
  p_freed_n int[], out lanes bigint[], out limits int[], out streams int[])
language plpgsql as $$
declare v_locked record; v_born bigint[]; v_stuck bigint[] := '{}'; v_open tid[] := '{}'; v record;
begin
  if p_new is not null then
    -- Born with one slot already out: it is handed on below, and in the common case of one task per lane the row is
    -- written once.
    with born as (
      insert into sluice.lane (id, limit_id, cap, used)
      select u.lane, u.limit_id,
        case when p_level = sluice.window_level() then sluice.lane_cap(u.lane, u.limit_id) end, 1
      from unnest(p_new, p_new_limits) u(lane, limit_id) order by u.lane
      on conflict do nothing returning id
    ) select array_agg(id) into v_born from born;
  end if;
  select * into v_locked from sluice.lock_lanes(p_new, p_new_limits, p_freed, p_freed_n, v_born);
  if v_locked.lanes is null then return; end if;
  if /* guard:window-level */ p_level = sluice.window_level() /* end */ then
    -- A window may have been shut by a failure, in this very transaction or in one whose lock we waited for: what it
    -- lets through is read by a later statement than the lock.
    -- guard: failures shut their windows -> test/postgres/workflow/races.test.ts: "two failFast fan-outs that fail at once start no further items"
    -- guard: a window is read after its lock -> test/postgres/workflow/races.test.ts: "an item that is released beside the first failure admits no other item"
    v_locked.room := array(
      select greatest(0, sluice.lane_cap(u.lane, sluice.window_limit()) - n.used + u.returned)
      from unnest(v_locked.lanes, v_locked.returned) with ordinality u(lane, returned, i)
      cross join lateral (select l.used from sluice.lane l where l.id = u.lane limit 1) n order by u.i);
  end if;
  if p_level = sluice.key_level() and exists (select from sluice.stuck) then
    -- Only where a stuck stream waits: a type that nobody serves must not make all others slow.
    v_stuck := array(select l from unnest(v_locked.lanes) l where exists (
      select from (select distinct stream from sluice.stuck) s where exists (
        select from sluice.waiting w where w.lane = l and w.lane >= sluice.first_key() and w.stream = s.stream)));
    v_open := array(select o from unnest(v_locked.lanes, v_locked.room) l(id, room)
      cross join lateral sluice.open_waiters(l.id, least(l.room, sluice.moves_max())) o where l.id = any (v_stuck));
  end if;
  select * into v from sluice.hand_on(p_level, v_locked.lanes, v_locked.returned, v_locked.room,
    v_locked.was_full, v_stuck, v_open);
  lanes := v.lanes;
  limits := v.limits;
  streams := v.streams;
  -- guard: a locked waiter is postponed -> test/postgres/attacks.test.ts: "attack 1: a waiter locked by a transaction that aborts is not forgotten"
  if /* guard:locked-out */ v.locked_out is not null /* end */ then
    perform sluice.postpone(v.locked_out, v.locked_out_limits);
  end if;
end $$;
