-- Takes slots of keys back from tasks that do not use them, if a task that waits for one of these slots could run now.
-- Such holders have passed their keys and wait for something else (a total, a worker), or hold a key and need another
-- that is full. They are parked, keeping their place and their turn, and their kind is stuck: skipped for a second or
-- until it can run. At a total only tasks that have waited for half a second count. Returns how many were parked.
-- Locks the row of pulse and the tasks, and skips what is locked.
create or replace function sluice.yield(p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v sluice.pulse;
  v_n int := 0;
  v_token bigint := (random() * 1000000000)::bigint;
begin
  select * into v from sluice.pulse for update skip locked;
  if not found then return 0; end if;
  -- Also if it is ahead of the clock, which was set back: otherwise no task would yield until the clock has caught up.
  -- guard: a pulse ahead of the clock -> test/postgres/clock.test.ts: "tasks still release their key slots to others after the clock was set back"
  if v.at /* guard:clock */ not between sluice.clock() - interval '500 ms' and sluice.clock() /* end */ then
    v.before := v.turn;
    v.turn := sluice.own_turn((select last_value from sluice.task_id)) + (select last_value from sluice.turn);
    update sluice.pulse set at = sluice.clock(), turn = v.turn, before = v.before;
  end if;
  with holder as materialized (
    select * from sluice.holders_at_totals(p_max, v.before, v_token) union select * from sluice.holders_at_keys(p_max)
  ), wanted as materialized (
    -- guard: waiting tasks yield -> test/postgres/yield.test.ts: "tasks that wait for a second key release the slots of the first to others"
    select h.* from (select distinct lanes, stream, gate, waits_at from holder) h
    where /* guard:wanted */ sluice.is_wanted(h.lanes, h.stream, h.gate, h.waits_at) /* end */
  ), chosen as materialized (
    select h.* from holder h
    join wanted w on w.lanes = h.lanes and w.stream = h.stream and w.gate = h.gate and w.waits_at = h.waits_at
    limit p_max
  ), from_gated as (
    delete from sluice.gated where ctid = any (array(
      select g.ctid from sluice.gated g
      where g.ctid = any (array(select c.tid from chosen c where c.source = 'gated')) for update skip locked))
    returning id
  ), from_ready as (
    delete from sluice.ready where ctid = any (array(
      select r.ctid from sluice.ready r
      where r.ctid = any (array(select c.tid from chosen c where c.source = 'ready')) for update skip locked))
    returning id
  ), from_wait as (
    delete from sluice.waiting where ctid = any (array(
      select w.ctid from sluice.waiting w
      where w.ctid = any (array(select c.tid from chosen c where c.source = 'waiting')) for update skip locked))
    returning id
  ), gone as materialized (
    select c.*, case when sluice.lane_level(c.lanes[1]) = sluice.order_level() then 1 else 0 end as held from chosen c
    where c.id in (select id from from_gated union all select id from from_ready union all select id from from_wait)
  ), parked as (
    insert into sluice.parked (id, stream, gate, rank, attempt, held, lane, turn)
    select id, stream, gate, rank, attempt, held, waits_at, turn from gone
  ), kinds as (
    insert into sluice.stuck (stream, gate, lane)
    select distinct g.stream, g.gate, g.waits_at from gone g order by 1, 2, 3
    on conflict (stream, gate, lane) do update set at = excluded.at
  ), notes as (
    insert into sluice.dirty (lane, limit_id, freed)
    select l, 0, count(*) from gone g cross join lateral unnest(g.lanes[g.held + 1:]) l group by l
  )
  select count(*) into v_n from gone;
  return v_n;
end $$;
