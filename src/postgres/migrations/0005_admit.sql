-- Admission: the only place that moves tasks through lanes.
--
-- Lock order of every transaction here: barrier (shared) -> run rows -> lanes by (level, id) ->
-- gates by id. A lane row is locked by whoever changes what it holds: it guards `used` and the
-- decision who of `wait` is next. One pass per transaction, ascending: a second pass would have to
-- lock below what it holds, and two such transactions wait for each other (attack 4).

-- Notes that wait to be looked at, oldest first; those in another transaction's hand are skipped.
create function sluice.take_dirty(p_max int, out joined bigint[], out joined_limits int[], out freed bigint[], out freed_n int[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  with note as (
    delete from sluice.dirty where ctid = any (array(select ctid from sluice.dirty order by n limit p_max for update skip locked))
    returning lane, limit_id, dirty.freed
  ), joins as (
    select lane, max(limit_id) as limit_id from note where note.freed = 0 group by lane
  ), frees as (
    select lane, sum(note.freed)::int as n from note where note.freed > 0 group by lane
  )
  select (select array_agg(lane) from joins), (select array_agg(limit_id) from joins),
    (select array_agg(lane) from frees), (select array_agg(n) from frees)
  into joined, joined_limits, freed, freed_n;
end $$;

-- Order keys: lanes of one slot. Whoever leaves one frees it, so the head of its line is next or nobody,
-- and the row of a lane changes only when nobody comes after. Returns what those who got theirs want next.
-- The same steps as for other lanes below, each in a statement of its own for the same reason.
create function sluice.admit_order(p_freed bigint[], p_joined bigint[], out onward bigint[], out onward_limits int[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_born bigint[]; v_locked bigint[]; v_idle bigint[]; v_free bigint[]; v_taken bigint[]; v_left bigint[];
begin
  if p_joined is not null then
    with born as (
      insert into sluice.lane (id, limit_id, cap, used) select l, 0, 1, 1 from unnest(p_joined) l order by l on conflict do nothing returning id
    ) select array_agg(id) into v_born from born;
  end if;

  -- guard: order lane lock -> test/postgres/attacks.test.ts: "the lock of an order key: two looks at once start one task"
  with locked as (
    select n.id, n.used from sluice.lane n where n.id = any (case when p_joined is null then p_freed
      else array(select l from unnest(p_freed || p_joined) l except select l from unnest(v_born) l) end) order by n.id for update
  )
  select array_agg(id), array_agg(id) filter (where p_joined is null or used = 0 or id = any (p_freed)), array_agg(id) filter (where used = 0)
  into v_locked, v_free, v_idle from locked;
  if p_joined is not null then
    v_free := v_free || v_born;
    -- Deleted between the two statements: the next claim looks.
    insert into sluice.dirty (lane, limit_id) select l, 0 from unnest(p_joined) l where l <> all (coalesce(v_locked || v_born, '{}'));
  end if;
  if v_free is null then return; end if;

  -- guard: head or nothing -> test/postgres/attacks.test.ts: "attack 8: a locked head of an order key is not jumped"
  with head as (
    select h.tid from unnest(v_free) l(id) cross join lateral (
      select ctid as tid from sluice.wait where lane = l.id order by place, id limit 1) h
  ), moved as (
    delete from sluice.wait where ctid = any (array(
      select ctid from sluice.wait where ctid = any (array(select tid from head)) for update skip locked)) returning *
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, lanes) select id, stream, rank, attempt, lanes from moved where cardinality(lanes) = 1 and gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, lanes) select id, stream, gate, rank, attempt, lanes from moved where cardinality(lanes) = 1 and gate <> 0
  ), to_wait as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits)
    select id, lanes[2], sluice.lane_place(lanes[2], rank), rank, attempt, 1, stream, gate, lanes, lane_limits from moved where cardinality(lanes) > 1
  )
  select array_agg(lane), array_agg(lanes[2]) filter (where cardinality(lanes) > 1), array_agg(lane_limits[2]) filter (where cardinality(lanes) > 1)
  into v_taken, onward, onward_limits from moved;

  if v_idle is not null then update sluice.lane set used = 1 where id = any (v_idle) and id = any (v_taken); end if;
  if cardinality(v_taken) = cardinality(v_free) then return; end if;
  v_left := array(select l from unnest(v_free) l where l <> all (coalesce(v_taken, '{}')));
  with lane as materialized (
    -- The head is locked by a transaction that may yet abort.
    select l as id, exists (select from sluice.wait w where w.lane = l) as more from unnest(v_left) l
  ), again as (
    -- guard: dirty row for a locked head -> test/postgres/attacks.test.ts: "attack 8: a locked head of an order key is not jumped"
    insert into sluice.dirty (lane, limit_id) select id, 0 from lane where more
  ), emptied as (
    delete from sluice.lane n where n.id = any (array(select id from lane where not more))
  )
  update sluice.lane n set used = 0 where n.id = any (array(select id from lane where more)) and n.used <> 0;
end $$;

-- Slots of one window were freed, and nobody joined it: what almost every step of a fan-out comes to. Whoever goes is
-- replaced, so its row mostly stays as it is. The same steps as for other lanes below; a window is always the last.
create function sluice.admit_window(p_lane bigint, p_freed int) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_used int; v_room int; v_taken int; v_more boolean;
begin
  -- guard: window lock -> test/postgres/workflow/races.test.ts: "two who free slots of one window at once lose none"
  select n.used into v_used from sluice.lane n where n.id = p_lane for update;
  if not found then return; end if;
  -- It may have been shut by a failure, in this very transaction too.
  -- guard: a failure shuts the window -> test/postgres/workflow/races.test.ts: "after the first failure of a fail-fast fan-out none of the others starts"
  v_room := greatest(0, sluice.lane_cap(p_lane, -2) - v_used + p_freed);
  with moved as (
    delete from sluice.wait where ctid = any (array(
      select ctid from sluice.wait where lane = p_lane order by place, id limit least(v_room, 1000) for update skip locked)) returning id, stream, gate, rank, attempt, lanes, nullif(late, 0) as late
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, lanes, late) select id, stream, rank, attempt, lanes, late from moved where gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, lanes, late) select id, stream, gate, rank, attempt, lanes, late from moved where gate <> 0
  )
  select count(*) into v_taken from moved;
  if v_taken = p_freed and v_taken = v_room then return; end if;

  v_used := v_used + v_taken - p_freed;
  v_more := (v_taken < v_room or v_used <= 0) and exists (select from sluice.wait where lane = p_lane);
  -- Seen but not taken: more than we move at once, or locked by a transaction that may yet abort.
  if v_more and v_taken < v_room then insert into sluice.dirty (lane, limit_id) values (p_lane, -2); end if;
  if v_used <= 0 and not v_more then
    delete from sluice.lane where id = p_lane;
  else
    update sluice.lane set used = v_used where id = p_lane;
  end if;
end $$;

-- p_freed: lanes with freed slots, p_freed_n of each (null: one each, a lane may repeat).
-- p_joined: lanes that somebody joined, with the limit of each. The caller holds the barrier.
create function sluice.admit(p_freed bigint[], p_freed_n int[], p_joined bigint[], p_joined_limits int[])
returns void language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_joined bigint[] := p_joined; v_limits int[] := p_joined_limits;
  v_new bigint[]; v_new_limits int[]; v_freed bigint[]; v_freed_n int[];
  v_born bigint[]; v_lanes bigint[]; v_returned int[]; v_room int[]; v_full bigint[]; v_all_full boolean; v_order record;
begin
  if p_joined is null and p_freed_n is null and p_freed[1] >> 60 = 3 and p_freed[1] = all (p_freed) then
    perform sluice.admit_window(p_freed[1], cardinality(p_freed));
    return;
  end if;
  v_freed := array(select l from unnest(p_freed) l where l >> 60 = 1);
  v_new := array(select l from unnest(p_joined) l where l >> 60 = 1);
  if v_freed <> '{}' or v_new <> '{}' then
    select * into v_order from sluice.admit_order(nullif(v_freed, '{}'), nullif(v_new, '{}'));
    v_joined := v_joined || v_order.onward; v_limits := v_limits || v_order.onward_limits;
    if v_order.onward is null and not exists (select from unnest(p_freed || p_joined) l where l >> 60 > 1) then return; end if;
  end if;
  for v_level in 2..4 loop
    select array_agg(lane order by lane), array_agg(limit_id order by lane) into v_new, v_new_limits
    from (select lane, max(limit_id) as limit_id from unnest(v_joined, v_limits) u(lane, limit_id) where lane >> 60 = v_level group by lane) x;
    select array_agg(lane order by lane), array_agg(n order by lane) into v_freed, v_freed_n
    from (select lane, sum(coalesce(n, 1))::int as n from unnest(p_freed, p_freed_n) u(lane, n) where lane >> 60 = v_level group by lane) x;
    continue when v_new is null and v_freed is null;

    -- Birth, with one slot already out: it is handed on below, and in the common case of one task
    -- per lane the row is written once. The number is read under the barrier, so no change of it
    -- can slip between this read and the commit.
    v_born := null;
    if v_new is not null then
      with born as (
        insert into sluice.lane (id, limit_id, cap, used)
        select lane, limit_id, sluice.lane_cap(lane, limit_id), 1 from unnest(v_new, v_new_limits) u(lane, limit_id) order by lane
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
      select id, cap - used as room from sluice.lane
      where id = any (array(select lane from touched where lane <> all (coalesce(v_born, '{}')))) order by id for update
    ), held as (
      select t.lane, t.freed as returned, l.room + t.freed as room, l.room <= 0 as was_full from touched t join locked l on l.id = t.lane
      union all
      select t.lane, t.freed + 1, n.cap - n.used + t.freed + 1, false from touched t join sluice.lane n on n.id = t.lane where t.lane = any (v_born)
    ), vanished as (
      -- Deleted between the two statements. Trying again here would break the ascending order: the next claim looks.
      insert into sluice.dirty (lane, limit_id) select lane, limit_id from touched t
      where limit_id is not null and not exists (select from held h where h.lane = t.lane)
    )
    select array_agg(lane), array_agg(returned), array_agg(greatest(0, room)), array_agg(lane) filter (where was_full), bool_and(was_full)
    into v_lanes, v_returned, v_room, v_full, v_all_full from held;
    continue when v_lanes is null;
    if v_level = 3 then
      -- A window may have been shut by a failure, in this very transaction or in one whose lock we waited for: what
      -- it lets through is read by a later statement than the lock.
      -- guard: failures shut their windows -> test/postgres/workflow/races.test.ts: "after failures of two fail-fast fan-outs at once none of the others starts"
      -- guard: a window is read after its lock -> test/postgres/workflow/races.test.ts: "an item that is handed back beside the first failure lets no other through"
      v_room := array(select greatest(0, sluice.lane_cap(u.lane, -2) - n.used + u.returned) from unnest(v_lanes, v_returned) with ordinality u(lane, returned, i)
        cross join lateral (select used from sluice.lane where id = u.lane limit 1) n order by u.i);
    end if;

    -- Fresh snapshot, lanes locked: every committed waiter is visible.
    with lane as (
      select * from unnest(v_lanes, v_returned, v_room) u(id, returned, room)
    ), candidate as (
      select w.tid, l.id as lane from lane l cross join lateral (
        select ctid as tid from sluice.wait where lane = l.id order by place, id limit least(l.room, 1000) for update skip locked) w
    ), moved as (
      -- Late: until now, or until these slots came back, all of its lane were out.
      delete from sluice.wait x where ctid = any (array(select tid from candidate))
      returning x.id, x.lane, x.rank, x.attempt, x.held, x.stream, x.gate, x.lanes, x.lane_limits,
        case when v_all_full or x.lane = any (v_full) then (x.late | (1 << x.held))::smallint else x.late end as late
    ), to_ready as (
      insert into sluice.ready (id, stream, rank, attempt, lanes, late) select id, stream, rank, attempt, lanes, nullif(late, 0) from moved
      where held + 1 = cardinality(lanes) and gate = 0
    ), to_gated as (
      insert into sluice.gated (id, stream, gate, rank, attempt, lanes, late) select id, stream, gate, rank, attempt, lanes, nullif(late, 0) from moved
      where held + 1 = cardinality(lanes) and gate <> 0
    ), to_wait as (
      insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, late)
      select id, lanes[held + 2], sluice.lane_place(lanes[held + 2], rank), rank, attempt, held + 1, stream, gate, lanes, lane_limits, late
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
      -- Seen but not taken: more than we move at once, or locked by a transaction that may yet abort.
      select a.*, (a.taken < a.room or a.used <= 0)
        and (select count(*) from (select from sluice.wait w where w.lane = a.id limit a.taken + 1) x) > a.taken as more
      from after a
    ), again as (
      -- guard: dirty row for a locked waiter -> test/postgres/attacks.test.ts: "attack 1: a waiter locked by a transaction that aborts is not forgotten"
      insert into sluice.dirty (lane, limit_id) select id, limit_id from left_over where more and taken < room
    ), behind as (
      -- Two limits of one level: the turn of a lane at or below this one is over, the next claim looks.
      insert into sluice.dirty (lane, limit_id) select lane, limit_id from onward where lane >> 60 <= v_level
    ), emptied as (
      delete from sluice.lane where ctid = any (array(select tid from left_over where used <= 0 and not more))
    ), updated as (
      update sluice.lane l set used = o.used from left_over o where l.ctid = o.tid and o.change <> 0 and (o.used > 0 or o.more)
    )
    select v_joined || (select array_agg(lane) from onward), v_limits || (select array_agg(limit_id) from onward) into v_joined, v_limits;
  end loop;
end $$;

-- For whoever has nothing to settle or claim: looks at the notes.
create function sluice.admit_dirty(p_max int) returns int language plpgsql as $$
declare v record;
begin
  perform sluice.barrier_shared();
  select * into v from sluice.take_dirty(p_max);
  if v.joined is null and v.freed is null then return 0; end if;
  perform sluice.admit(v.freed, v.freed_n, v.joined, v.joined_limits);
  return coalesce(cardinality(v.joined), 0) + coalesce(cardinality(v.freed), 0);
end $$;
