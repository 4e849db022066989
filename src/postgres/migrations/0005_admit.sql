-- Admission: the only place that moves tasks through lanes.
--
-- Lock order of every transaction here: barrier (shared) -> run rows -> lanes by (level, id) ->
-- gates by id. A lane row is locked by whoever changes what it holds: it guards `used` and the
-- decision who of `wait` is next. One pass per transaction, ascending: a second pass would have to
-- lock below what it holds, and two such transactions wait for each other (attack 4).

-- Notes that wait to be looked at; those in another transaction's hand are skipped. Most of a look goes to the newest, so
-- that fresh work is not behind a backlog of notes, and a quarter to the oldest, so that the backlog shrinks whatever
-- comes. Their order matters to nobody: who is next in a lane is decided by `wait`.
create function sluice.take_dirty(p_max int, out joined bigint[], out joined_limits int[], out freed bigint[], out freed_n int[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_newest int := p_max - p_max / 4; v_tids tid[];
begin
  -- guard: the newest notes first -> test/postgres/notes.test.ts: "a fresh task is admitted by the next claim although thousands of notes are older"
  v_tids := array(select ctid from sluice.dirty order by n desc limit v_newest for update skip locked);
  if cardinality(v_tids) = v_newest then
    -- guard: and some of the oldest -> test/postgres/notes.test.ts: "old notes are looked at although fresh ones keep coming"
    v_tids := v_tids || array(select ctid from sluice.dirty order by n limit p_max / 4 for update skip locked);
  end if;
  with note as (
    delete from sluice.dirty where ctid = any (v_tids)
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

-- These lanes have room, and waiters that open transactions have locked, which may yet abort. Each lane gets a row for
-- every such transaction, whose id is the xmax of the locked rows; of an order key only the head counts. The caller
-- holds the lanes' locks. Whoever has deleted a row that is still visible here looks at the lane after us, so a row that
-- is there already is as good as a new one, and nobody waits for anybody.
create function sluice.postpone(p_lanes bigint[], p_limits int[]) returns void
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  insert into sluice.postponed (blocker, lane, limit_id)
  select distinct coalesce(w.blocker, 0), l.lane, l.limit_id from unnest(p_lanes, p_limits) l(lane, limit_id)
  left join lateral (
    select case when k.xmax <> 0 or l.lane >> 60 <> 3 then k.xmax else (
      -- guard: a key waits for the kinds that are stuck there -> test/postgres/notes.test.ts: "a key is looked at again when one of its stuck kinds can run"
      select -s.n from sluice.stuck s where s.stream = k.stream and s.gate = any (array[0, k.gate])
        and (s.lane = 0 or s.lane = any (k.later)) order by s.n limit 1) end as blocker
    from (
      select distinct x.xmax::text::bigint as xmax, x.stream, x.gate, x.lanes[x.held + 2:] as later from (
        select w.xmax, w.stream, w.gate, w.lanes, w.held from sluice.wait w where w.lane = l.lane
        order by w.place, w.id limit case when l.lane >> 60 = 1 then 1 else 1000 end) x) k) w on true
  where not exists (select from sluice.postponed p where p.blocker = coalesce(w.blocker, 0) and p.lane = l.lane);
end $$;

-- Whether the transaction of this id (32 bits, as in xmax) is over. Also true for an id that is none: of several lockers
-- at once xmax names a list.
create function sluice.has_ended(p_xid bigint) returns boolean language plpgsql stable as $$
declare v_next bigint := pg_snapshot_xmax(pg_current_snapshot())::text::bigint; v_behind bigint;
begin
  -- Half of all ids lie before the next one, the others after it.
  v_behind := ((v_next - p_xid + 2147483648) & 4294967295) - 2147483648;
  if p_xid = 0 then return true; end if;
  if v_behind > 0 then return pg_xact_status((v_next - v_behind)::text::xid8) is distinct from 'in progress'; end if;
  -- Newer than our snapshot, or none. Apart, because a block that catches errors costs more than the question.
  begin
    return pg_xact_status((v_next - v_behind)::text::xid8) is distinct from 'in progress';
  exception when invalid_parameter_value then
    return true;
  end;
end $$;

-- Lanes whose blockers have ended, committed or not, become notes, and so do those of kinds that are no longer stuck.
-- Cheap while there are none, however many lanes wait. Of lanes whose kinds are still stuck some are looked at all the
-- same, in turn: they may not be all that waits there.
create function sluice.recall(p_max int) returns int
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_ended bigint[]; v_stuck bigint[]; v_tids tid[]; v_n int; v_from bigint := (random() * 4611686018427387903)::bigint;
begin
  with recursive blocker as (
    (select p.blocker as id from sluice.postponed p order by p.blocker limit 1)
    union all
    select (select p.blocker from sluice.postponed p where p.blocker > b.id order by p.blocker limit 1) from blocker b
    where b.id is not null
  ), judged as (
    select b.id, case when b.id >= 0 then sluice.has_ended(b.id)
      else not exists (select from sluice.stuck s where s.n = -b.id) end as ended from blocker b where b.id is not null
  )
  select coalesce(array_agg(j.id) filter (where j.ended), '{}'), coalesce(array_agg(j.id) filter (where not j.ended and j.id < 0), '{}')
  into v_ended, v_stuck from judged j;
  -- guard: transactions that ended come before kinds that are stuck -> test/postgres/notes.test.ts: "a waiter of a rolled-back cancel is admitted beside thousands of keys whose tasks are stuck"
  v_tids := array(select ctid from sluice.postponed where blocker = any (v_ended) limit p_max for update skip locked)
    || array(select x.tid from unnest(v_stuck) k(id) cross join lateral (
      select p.ctid as tid from sluice.postponed p where p.blocker = k.id and p.lane >= v_from order by p.lane limit 50
      for update skip locked) x);
  if v_tids = '{}' then return 0; end if;
  with gone as (delete from sluice.postponed where ctid = any (v_tids) returning *)
  insert into sluice.dirty (lane, limit_id) select lane, max(limit_id) from gone group by lane;
  get diagnostics v_n = row_count;
  return v_n;
end $$;

-- Order keys: lanes of one slot. Whoever leaves one frees it, so the head of its line is next or nobody,
-- and the row of a lane changes only when nobody comes after. Returns what those who got theirs want next.
-- The same steps as for other lanes below, each in a statement of its own for the same reason.
create function sluice.admit_order(p_freed bigint[], p_joined bigint[], out onward bigint[], out onward_limits int[], out streams int[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_born bigint[]; v_locked bigint[]; v_idle bigint[]; v_free bigint[]; v_taken bigint[]; v_left bigint[]; v_stuck bigint[];
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
  ), passed as (
    -- guard: order keys take turns -> test/postgres/turns.test.ts: "a new key waits for at most one round of the others: %s"
    select id, stream, gate, rank, attempt, lanes, coalesce(turn, sluice.next_turn((select last_value from sluice.task_id))) as turn
    from (select * from moved where cardinality(lanes) = 1 order by id) m
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes) select id, stream, rank, attempt, turn, lanes from passed where gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes) select id, stream, gate, rank, attempt, turn, lanes from passed where gate <> 0
  ), to_wait as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, turn)
    select id, lanes[2], sluice.lane_place(lanes[2], rank), rank, attempt, 1, stream, gate, lanes, lane_limits, turn from moved where cardinality(lanes) > 1
  )
  select array_agg(lane), array_agg(lanes[2]) filter (where cardinality(lanes) > 1), array_agg(lane_limits[2]) filter (where cardinality(lanes) > 1),
    array_agg(distinct stream) filter (where cardinality(lanes) = 1)
  into v_taken, onward, onward_limits, streams from moved;

  if v_idle is not null then update sluice.lane set used = 1 where id = any (v_idle) and id = any (v_taken); end if;
  if cardinality(v_taken) = cardinality(v_free) then return; end if;
  v_left := array(select l from unnest(v_free) l where l <> all (coalesce(v_taken, '{}')));
  with lane as materialized (
    -- The head is locked by a transaction that may yet abort.
    select l as id, exists (select from sluice.wait w where w.lane = l) as more from unnest(v_left) l
  ), emptied as (
    delete from sluice.lane n where n.id = any (array(select id from lane where not more))
  ), freed as (
    update sluice.lane n set used = 0 where n.id = any (array(select id from lane where more)) and n.used <> 0
  )
  select array_agg(id) filter (where more) into v_stuck from lane;
  -- guard: a locked head is postponed -> test/postgres/attacks.test.ts: "attack 8: a locked head of an order key is not jumped"
  if v_stuck is not null then perform sluice.postpone(v_stuck, array_fill(0, array[cardinality(v_stuck)])); end if;
end $$;

-- Slots of one window were freed, and nobody joined it: what almost every step of a fan-out comes to. Whoever goes is
-- replaced, so its row mostly stays as it is. The same steps as for other lanes below. Returns what those that have keys
-- want next.
create function sluice.admit_window(p_lane bigint, p_freed int, out onward bigint[], out onward_limits int[], out streams int[])
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
      select ctid from sluice.wait where lane = p_lane order by place, id limit least(v_room, 1000) for update skip locked))
    returning id, stream, gate, rank, attempt, held + 1 as held, lanes, lane_limits, late, turn as had, held + 1 = cardinality(lanes) as through
  ), passed as (
    select *, coalesce(had, sluice.next_turn((select last_value from sluice.task_id))) as turn from (select * from moved where through order by id) m
  ), to_ready as (
    insert into sluice.ready (id, stream, rank, attempt, turn, lanes, late)
    select id, stream, rank, attempt, turn, lanes, nullif(late, 0) from passed where gate = 0
  ), to_gated as (
    insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes, late)
    select id, stream, gate, rank, attempt, turn, lanes, nullif(late, 0) from passed where gate <> 0
  ), to_wait as (
    insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, late, turn)
    select id, lanes[held + 1], sluice.lane_place(lanes[held + 1], rank), rank, attempt, held, stream, gate, lanes, lane_limits, late, had
    from moved where not through
  )
  select count(*), array_agg(lanes[held + 1]) filter (where not through), array_agg(lane_limits[held + 1]) filter (where not through),
    array_agg(distinct stream) filter (where through)
  into v_taken, onward, onward_limits, streams from moved;
  if v_taken = p_freed and v_taken = v_room then return; end if;

  v_used := v_used + v_taken - p_freed;
  v_more := (v_taken < v_room or v_used <= 0) and exists (select from sluice.wait where lane = p_lane);
  -- Seen but not taken: more than we move at once, or locked by a transaction that may yet abort.
  if v_more and v_taken < least(v_room, 1000) then
    perform sluice.postpone(array[p_lane], array[-2]);
  elsif v_more and v_taken < v_room then
    insert into sluice.dirty (lane, limit_id) values (p_lane, -2);
  end if;
  if v_used <= 0 and not v_more then
    delete from sluice.lane where id = p_lane;
  else
    update sluice.lane set used = v_used where id = p_lane;
  end if;
end $$;

-- p_freed: lanes with freed slots, p_freed_n of each (null: one each, a lane may repeat).
-- p_joined: lanes that somebody joined, with the limit of each. The caller holds the barrier. Returns the streams of tasks
-- that passed their last lane: a worker that serves them may sleep, and no enqueue rings for these.
create function sluice.admit(p_freed bigint[], p_freed_n int[], p_joined bigint[], p_joined_limits int[])
returns int[] language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
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
      select id, coalesce(cap,
        (select coalesce(x.per_key_override, x.per_key_declared) from sluice.limits x where x.id = limit_id), 2147483647) - used as room
      from sluice.lane
      where id = any (array(select lane from touched where lane <> all (coalesce(v_born, '{}')))) order by id for update
    ), held as (
      select t.lane, t.freed as returned, l.room + t.freed as room, l.room <= 0 as was_full from touched t join locked l on l.id = t.lane
      union all
      select t.lane, t.freed + 1,
        coalesce(n.cap,
        (select coalesce(x.per_key_override, x.per_key_declared) from sluice.limits x where x.id = n.limit_id), 2147483647) - n.used + t.freed + 1,
        false from touched t join sluice.lane n on n.id = t.lane where t.lane = any (v_born)
    ), vanished as (
      -- Deleted between the two statements. Trying again here would break the ascending order: the next claim looks.
      insert into sluice.dirty (lane, limit_id) select lane, limit_id from touched t
      where limit_id is not null and not exists (select from held h where h.lane = t.lane)
    )
    select array_agg(lane), array_agg(returned), array_agg(greatest(0, room)), array_agg(lane) filter (where was_full), bool_and(was_full)
    into v_lanes, v_returned, v_room, v_full, v_all_full from held;
    continue when v_lanes is null;
    if v_level = 2 then
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
          select from sluice.wait w where w.lane = l and w.lane >= 3458764513820540928 and w.stream = s.stream)));
      v_open := array(select o from unnest(v_lanes, v_room) l(id, room)
        cross join lateral sluice.open_waiters(l.id, least(l.room, 1000)) o where l.id = any (v_slow));
    end if;
    with lane as (
      select * from unnest(v_lanes, v_returned, v_room) u(id, returned, room)
    ), in_line as (
      select w.tid, l.id as lane from lane l cross join lateral (
        select ctid as tid from sluice.wait where lane = l.id order by place, id limit least(l.room, 1000) for update skip locked) w
      where l.id <> all (v_slow)
    ), open as (
      select ctid as tid, lane from sluice.wait where ctid = any (v_open) for update skip locked
    ), candidate as (
      select * from in_line union all select * from open
    ), moved as (
      -- Late: until now, or until these slots came back, all of its lane were out.
      delete from sluice.wait x where ctid = any (array(select tid from candidate))
      returning x.id, x.lane, x.rank, x.attempt, x.held, x.stream, x.gate, x.lanes, x.lane_limits, x.turn as had,
        case when v_all_full or x.lane = any (v_full) then (x.late | (1 << x.held))::smallint else x.late end as late
    ), passed as (
      -- guard: keys of a limit take turns -> test/postgres/turns.test.ts: "a new key waits for at most one round of the others: %s"
      -- guard: a task that gave its slots back has its turn again -> test/postgres/yield.test.ts: "a task that gave its key back is not overtaken for ever at a busy total"
      select *, coalesce(had, sluice.next_turn((select last_value from sluice.task_id))) as turn from (select * from moved where held + 1 = cardinality(lanes) order by id) m
    ), to_ready as (
      insert into sluice.ready (id, stream, rank, attempt, turn, lanes, late)
      select id, stream, rank, attempt, turn, lanes, nullif(late, 0) from passed where gate = 0
    ), to_gated as (
      insert into sluice.gated (id, stream, gate, rank, attempt, turn, lanes, late)
      select id, stream, gate, rank, attempt, turn, lanes, nullif(late, 0) from passed where gate <> 0
    ), to_wait as (
      insert into sluice.wait (id, lane, place, rank, attempt, held, stream, gate, lanes, lane_limits, late, turn)
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
        and (select count(*) from (select from sluice.wait w where w.lane = a.id limit a.taken + 1) x) > a.taken as more
      from after a
    ), again as (
      insert into sluice.dirty (lane, limit_id) select id, limit_id from left_over where more and taken < room and not stuck
    ), behind as (
      -- Two limits of one level: the turn of a lane at or below this one is over, the next claim looks.
      insert into sluice.dirty (lane, limit_id) select lane, limit_id from onward where lane >> 60 <= v_level
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
    if v_stuck is not null then perform sluice.postpone(v_stuck, v_stuck_limits); end if;
  end loop;
  return v_streams;
end $$;

-- For whoever has nothing to settle or claim: looks at the notes.
create function sluice.admit_dirty(p_max int) returns int language plpgsql as $$
declare v record;
begin
  perform sluice.barrier_shared();
  select * into v from sluice.take_dirty(p_max);
  if v.joined is null and v.freed is null then return 0; end if;
  perform sluice.ring_streams(sluice.admit(v.freed, v.freed_n, v.joined, v.joined_limits));
  return coalesce(cardinality(v.joined), 0) + coalesce(cardinality(v.freed), 0);
end $$;
