-- Admission: the only place that moves tasks through lanes.
--
-- Lock order of every transaction here: barrier (shared) -> run rows -> lanes by (level, id) ->
-- gates by id. A transaction that changes what a lane holds locks its row, which guards `used` and the
-- decision who of `waiting` is next. One pass per transaction, ascending: a second pass would have to
-- lock below what it holds, and two such transactions wait for each other (attack 4).

-- p_freed: lanes with freed slots, p_freed_n of each (null: one each, a lane may repeat).
-- p_joined: lanes that somebody joined, with the limit of each. The caller holds the barrier. Returns the streams of tasks
-- that passed their last lane: a worker that serves them may sleep, and no enqueue rings for these.
create or replace function sluice.admit(p_freed bigint[], p_freed_n int[], p_joined bigint[], p_joined_limits int[])
returns int[] language plpgsql /* settings: index plans */ as $$
declare
  v_joined bigint[] := p_joined; v_limits int[] := p_joined_limits;
  v_new bigint[]; v_new_limits int[]; v_freed bigint[]; v_freed_n int[];
  v_born bigint[]; v_lanes bigint[]; v_returned int[]; v_room int[]; v_full bigint[]; v_all_full boolean; v_first record; v_passed int[]; v_streams int[];
  v_stuck bigint[]; v_stuck_limits int[]; v_open tid[]; v_slow bigint[];
begin
  if p_joined is null and p_freed_n is null and p_freed[1] >> 60 = 2 and p_freed[1] = all (p_freed) then
    select * into v_first from sluice.admit_window(p_freed[1], cardinality(p_freed));
    if v_first.onward is null then return v_first.streams; end if;
    v_streams := v_first.streams; v_joined := v_first.onward; v_limits := v_first.onward_limits; p_freed := null;
  end if;
  v_freed := array(select l from unnest(p_freed) l where l >> 60 = 1);
  v_new := array(select l from unnest(p_joined) l where l >> 60 = 1);
  if v_freed <> '{}' or v_new <> '{}' then
    select * into v_first from sluice.admit_order(nullif(v_freed, '{}'), nullif(v_new, '{}'));
    v_streams := v_first.streams; v_joined := v_joined || v_first.onward; v_limits := v_limits || v_first.onward_limits;
    if v_first.onward is null and not exists (select from unnest(p_freed || p_joined) l where l >> 60 > 1) then return v_streams; end if;
  end if;
  for v_level in 2..3 loop
    select array_agg(lane order by lane), array_agg(limit_id order by lane) into v_new, v_new_limits
    from (select lane, max(limit_id) as limit_id from unnest(v_joined, v_limits) u(lane, limit_id) where lane >> 60 = v_level group by lane) x;
    select array_agg(lane order by lane), array_agg(n order by lane) into v_freed, v_freed_n
    from (select lane, sum(coalesce(n, 1))::int as n from unnest(p_freed, p_freed_n) u(lane, n) where lane >> 60 = v_level group by lane) x;
    continue when v_new is null and v_freed is null;

    -- Birth, with one slot already out: it is handed on below, and in the common case of one task
    -- per lane the row is written once.
    v_born := null;
    if v_new is not null then
      with born as (
        insert into sluice.lane (id, limit_id, cap, used)
        select lane, limit_id, case when limit_id <= 0 then sluice.lane_cap(lane, limit_id) end, 1
        from unnest(v_new, v_new_limits) u(lane, limit_id) order by lane
        on conflict do nothing returning id
      ) select array_agg(id) into v_born from born;
    end if;

    -- Lock in ascending order. A statement of its own: what is counted and taken must be read by a
    -- later snapshot than the lock, or two completions hand out the same slot (READ COMMITTED).
    -- guard: lane lock -> test/postgres/attacks.test.ts: "the lane lock: two hand-overs at once never exceed the capacity"
    with touched as (
      select coalesce(n.lane, f.lane) as lane, coalesce(f.n, 0) as freed, n.limit_id
      from unnest(v_new, v_new_limits) n(lane, limit_id) full join unnest(v_freed, v_freed_n) f(lane, n) on f.lane = n.lane
    ), locked as (
      -- The number of a limit is read under the barrier, so no change of it can slip between this read and the commit.
      -- guard: caps follow the limit -> test/postgres/limits.test.ts: "a lowered limit per key admits nothing until below"
      select id, coalesce(/* guard:window */ cap /* end */,
        (select /* guard:cap */ coalesce(x.per_key_override, x.per_key_declared) /* end */ from sluice.limits x where x.id = limit_id), 2147483647) - used as room
      from sluice.lane
      where id = any (array(select lane from touched where lane <> all (coalesce(v_born, '{}')))) order by id /* guard:lane-lock */ for update /* end */
    ), held as (
      select t.lane, t.freed as returned, l.room + t.freed as room, l.room <= 0 as was_full from touched t join locked l on l.id = t.lane
      union all
      select t.lane, t.freed + 1,
        coalesce(n.cap,
        (select /* guard:cap */ coalesce(x.per_key_override, x.per_key_declared) /* end */ from sluice.limits x where x.id = n.limit_id), 2147483647) - n.used + t.freed + 1,
        false from touched t join sluice.lane n on n.id = t.lane where t.lane = any (v_born)
    ), vanished as (
      -- Deleted between the two statements. Trying again here would break the ascending order: the next claim looks.
      insert into sluice.dirty (lane, limit_id) select lane, limit_id from touched t
      where /* guard:vanished */ limit_id is not null /* end */ and not exists (select from held h where h.lane = t.lane)
    )
    select array_agg(lane), array_agg(returned), array_agg(greatest(0, room)), array_agg(lane) filter (where was_full), bool_and(was_full)
    into v_lanes, v_returned, v_room, v_full, v_all_full from held;
    continue when v_lanes is /* guard:snapshot */ null; /* end */
    if /* guard:window-level */ v_level = 2 /* end */ then
      -- A window may have been shut by a failure, in this very transaction or in one whose lock we waited for: what
      -- it lets through is read by a later statement than the lock.
      -- guard: failures shut their windows -> test/postgres/workflow/races.test.ts: "after failures of two fail-fast fan-outs at once none of the others starts"
      -- guard: a window is read after its lock -> test/postgres/workflow/races.test.ts: "an item that is handed back beside the first failure lets no other through"
      v_room := array(select greatest(0, sluice.lane_cap(u.lane, -2) - n.used + u.returned) from unnest(v_lanes, v_returned) with ordinality u(lane, returned, i)
        cross join lateral (select used from sluice.lane where id = u.lane limit 1) n order by u.i);
    end if;

    -- Fresh snapshot, lanes locked: every committed waiter is visible.
    v_slow := '{}'; v_open := '{}';
    if v_level = 3 and exists (select from sluice.stuck) then
      -- Only where a stuck stream waits: a type that nobody serves must not make all others slow.
      v_slow := array(select l from unnest(v_lanes) l where exists (
        select from (select distinct stream from sluice.stuck) s where exists (
          select from sluice.waiting w where w.lane = l and w.lane >= 3458764513820540928 and w.stream = s.stream)));
      v_open := array(select o from unnest(v_lanes, v_room) l(id, room)
        cross join lateral sluice.open_waiters(l.id, least(l.room, 1000)) o where l.id = any (v_slow));
    end if;
    with lane as (
      select * from unnest(v_lanes, v_returned, v_room) u(id, returned, room)
    ), in_line as (
      select w.tid, l.id as lane from lane l cross join lateral (
        select ctid as tid from sluice.waiting where lane = l.id order by place, id limit least(l.room, 1000) for update skip locked) w
      where l.id <> all (v_slow)
    ), open as (
      select ctid as tid, lane from sluice.waiting where ctid = any (v_open) for update skip locked
    ), candidate as (
      select * from in_line union all select * from open
    ), moved as (
      -- Late: until now, or until these slots came back, all of its lane were out.
      delete from sluice.waiting x where ctid = any (array(select tid from candidate))
      returning x.id, x.lane, x.rank, x.attempt, x.held, x.stream, x.gate, x.lanes, x.lane_limits, x.turn as had,
        case when v_all_full or x.lane = any (v_full) then (x.late | (1 << x.held))::smallint else x.late end as late
    ), passed as (
      -- guard: keys of a limit take turns -> test/postgres/turns.test.ts: "a new key waits for at most one round of the others: %s"
      -- guard: a task that gave its slots back has its turn again -> test/postgres/yield.test.ts: "a task that gave its key back is not overtaken for ever at a busy total"
      select *, coalesce(/* guard:turn-kept */ had /* end */, /* guard:turns */ sluice.next_turn((select last_value from sluice.task_id)) /* end */) as turn from (select * from moved where held + 1 = cardinality(lanes) order by id) m
    ), to_ready as (
      insert into sluice.ready (id, stream, rank, attempt, turn, lanes, late)
      select id, stream, rank, attempt, turn, lanes, nullif(late, 0) from passed where gate = 0
    ), to_gated as (
      insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes, late)
      select id, stream, gate, rank, attempt, turn, lanes, nullif(late, 0) from passed where gate <> 0
    ), to_wait as (
      insert into sluice.waiting (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, late, turn)
      select id, lanes[held + 2], sluice.lane_place(lanes[held + 2], rank), rank, attempt, held + 1, stream, gate, lanes, lane_limits, late, had
      from moved where held + 1 < cardinality(lanes)
    ), onward as (
      select lanes[held + 2] as lane, max(lane_limits[held + 2]) as limit_id from moved where held + 1 < cardinality(lanes) group by 1
    ), tally as (
      select l.id, l.room, count(n.lane)::int as taken, count(n.lane)::int - l.returned as change
      from lane l left join candidate n on n.lane = l.id group by l.id, l.room, l.returned
    ), after as (
      select t.*, r.tid, r.used + t.change as used, r.limit_id from tally t
      cross join lateral (select ctid as tid, used, limit_id from sluice.lane where id = t.id limit 1) r
      where t.change <> 0 or t.taken < t.room
    ), left_over as materialized (
      -- Seen but not taken: more than we move at once, or (stuck) locked by a transaction that may yet abort.
      select a.*, a.taken < least(a.room, 1000) as stuck, (a.taken < a.room or a.used <= 0)
        and (select count(*) from (select from sluice.waiting w where w.lane = a.id limit a.taken + 1) x) > a.taken as more
      from after a
    ), again as (
      insert into sluice.dirty (lane, limit_id) select id, limit_id from left_over where more and taken < room and not stuck
    ), behind as (
      -- Two limits of one level: the turn of a lane at or below this one is over, the next claim looks.
      insert into sluice.dirty (lane, limit_id) select lane, limit_id from onward where /* guard:turn-over */ lane >> 60 <= v_level /* end */
    ), emptied as (
      delete from sluice.lane where ctid = any (array(select tid from left_over where used <= 0 and not more))
    ), updated as (
      update sluice.lane l set used = o.used from left_over o where l.ctid = o.tid and o.change <> 0 and (o.used > 0 or o.more)
    )
    select v_joined || (select array_agg(lane) from onward), v_limits || (select array_agg(limit_id) from onward), (select array_agg(distinct stream) from passed),
      (select array_agg(id) from left_over where more and stuck), (select array_agg(limit_id) from left_over where more and stuck)
    into v_joined, v_limits, v_passed, v_stuck, v_stuck_limits;
    v_streams := v_streams || v_passed;
    -- guard: a locked waiter is postponed -> test/postgres/attacks.test.ts: "attack 1: a waiter locked by a transaction that aborts is not forgotten"
    if /* guard:stuck */ v_stuck is not null /* end */ then perform sluice.postpone(v_stuck, v_stuck_limits); end if;
  end loop;
  return v_streams;
end $$;
