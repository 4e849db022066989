-- What could run, runs. A task that needs several things can wait for the last of them while it keeps the first from
-- others, or be overtaken for ever by tasks that need only one of them. The keeper sees to both, at most twice a second,
-- one worker at a time; none of this is on the way of a claim unless there is something to see to.

-- Slots kept for tasks that need several at once: from `since` on for span_ms, then not for as long, so that what others
-- could use does not lie idle for long when one of the totals stays full; then for twice as long. gates: its totals.
create table sluice.kept (
  id bigint primary key, gates int[] not null, since timestamptz not null, span_ms int not null
);

-- Whether a live worker serves this stream. p_free: one that can take one more task, as of its last heartbeat; a busy
-- one replaces what ends all the same.
create function sluice.has_taker(p_stream int, p_free boolean) returns boolean language plpgsql stable as $$
begin
  return exists (select from sluice.stream s where s.id = p_stream and not s.paused)
    and exists (select from sluice.worker w where w.streams @> array[p_stream] and not w.draining
      and w.expires_at > sluice.clock() and (not p_free or w.capacity_available > 0 and w.pressure <> 'stopped'));
end $$;

-- Whether nobody waits at this total before a task of this rank and turn.
create function sluice.is_first_at(p_total int, p_rank smallint, p_turn bigint) returns boolean language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare v_gates int[] :=
  array[p_total] || array(select m.gate from sluice.gate_member m where m.total = p_total limit 1000);
begin
  return not exists (
    select from sluice.gate_stream gs cross join unnest(v_gates) x(gate)
    cross join lateral (select g.rank, g.turn from sluice.gated g where g.stream = gs.stream and g.gate = x.gate order by g.rank, g.turn limit 1) h
    where gs.gate = p_total and (h.rank, h.turn) < (p_rank, p_turn))
  and not exists (
    select from sluice.stream s
    cross join lateral (select r.rank, r.turn from sluice.ready r where r.stream = s.id order by r.rank, r.turn limit 1) h
    where s.gate = p_total and (h.rank, h.turn) < (p_rank, p_turn));
end $$;

-- Tasks that need several totals, are first at all of them, and find at least one full. They may never find all free at
-- once, because each total is used by others in turn. Of each stream up to 64 kinds each way are looked at, from one that
-- the token decides, and of 500 streams.
create function sluice.first_at_all(p_token bigint) returns table (id bigint, gates int[]) language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare v_start int := sluice.turn_of(p_token);
begin
  return query
  with recursive busy as (
    (select g.stream, 1 as n from sluice.gated g order by g.stream limit 1)
    union all
    select x.stream, b.n + 1 from busy b cross join lateral (
      select g.stream from sluice.gated g where g.stream > b.stream order by g.stream limit 1) x where b.n < 500
  ), part as (
    -- Without a limit of its own a stream has several totals only where the gate is a set.
    select b.stream, s.gate as stream_gate, t.low, least(t.high, case when s.gate > 0 then 2147483647 else -1 end) as high
    from busy b cross join lateral (select k.gate from sluice.stream k where k.id = b.stream limit 1) s
    cross join (values (v_start, 2147483647), (-2147483648, v_start - 1)) t(low, high)
  ), head as (
    select p.stream, p.stream_gate, h.gate, h.rank, h.turn, h.id from part p cross join lateral (
      with recursive kind as (
        (select g.gate, g.rank, g.turn, g.id, 1 as n from sluice.gated g
          where g.stream = p.stream and g.gate >= p.low and g.gate <= p.high order by g.gate, g.rank, g.turn limit 1)
        union all
        select x.gate, x.rank, x.turn, x.id, k.n + 1 from kind k cross join lateral (
          select g.gate, g.rank, g.turn, g.id from sluice.gated g
          where g.stream = p.stream and g.gate > k.gate and g.gate <= p.high order by g.gate, g.rank, g.turn limit 1) x
        where k.n < 64
      ) select k.gate, k.rank, k.turn, k.id from kind k) h
  )
  select h.id, t.gates from head h
  cross join lateral (select array(select distinct g from unnest(sluice.gates_of(h.gate) || h.stream_gate) g where g > 0 order by g) as gates) t
  where cardinality(t.gates) > 1 and sluice.has_taker(h.stream, false)
    and exists (select from unnest(t.gates) g where sluice.gate_room(g, null, null, h.id) <= 0)
    and not exists (select from unnest(t.gates) g where not sluice.is_first_at(g, h.rank, h.turn));
end $$;

-- Keeps slots for those, a second after they were first seen, and for tasks that a worker has emptied itself for. Changes
-- only counters, which it takes in the order of their ids and skips when busy: it holds no other lock but the barrier and
-- the row of pulse, by which one keeper at a time does this.
create function sluice.keep_slots() returns void language plpgsql as $$
declare v_now timestamptz := sluice.clock(); v_changed int[];
begin
  if not exists (select from sluice.gated) and not exists (select from sluice.suspect) and not exists (select from sluice.kept) then return; end if;
  insert into sluice.pulse default values on conflict do nothing;
  perform from sluice.pulse for update skip locked;
  if not found then return; end if;
  -- Further ahead than it is ever written: the clock was set back, and nothing would be kept until it has caught up.
  -- guard: a keeping ahead of the clock -> test/postgres/clock.test.ts: "after the clock was set back a slot is still kept for the task that needs several"
  delete from sluice.kept k where k.since > v_now + interval '1 second'
    or not exists (select from sluice.suspect s where s.id = k.id and s.reserved_by is not null)
      and not exists (select from sluice.task t where t.id = k.id and sluice.gated_at(t.id, t.stream, t.gate, t.rank, t.lanes) is not null);
  insert into sluice.kept (id, gates, since, span_ms)
  select f.id, f.gates, v_now + interval '1 second', 2000 from sluice.first_at_all((random() * 1000000000)::bigint) f
  union all
  select s.id, array(select distinct g from unnest(sluice.gates_of(t.gate) || st.gate) g where g > 0 order by g), v_now, 60000
  from sluice.suspect s join sluice.task t on t.id = s.id join sluice.stream st on st.id = t.stream where s.reserved_by is not null
  order by 1 on conflict (id) do nothing;
  update sluice.kept k set since = v_now, span_ms = least(2 * k.span_ms, 60000) where v_now >= k.since + 2 * k.span_ms * interval '1 ms';
  with changed as (update sluice.gate g set kept_for = w.id from (
    select x.gate, (select min(k.id) from sluice.kept k where x.gate = any (k.gates)
        and v_now >= k.since and v_now < k.since + k.span_ms * interval '1 ms') as id
    from (select unnest(k.gates) as gate from sluice.kept k union select c.id from sluice.gate c where c.kept_for is not null) x
  ) w
  where g.id = w.gate and g.kept_for is distinct from w.id
    -- In one list, and not by an OR: that would look at every counter.
    and g.id = any (array(select l.id from sluice.gate l where l.id = any (array(
        select unnest(k.gates) from sluice.kept k union select c.id from sluice.gate c where c.kept_for is not null))
      order by l.id for update skip locked))
    returning g.id)
  select array_agg(id) into v_changed from changed;
  if v_changed is not null then perform sluice.note_returned(v_changed); end if;
end $$;

-- Whether tasks of this kind could start now: its totals have room, and a worker serves it. p_free: as in has_taker.
create function sluice.is_open(p_stream int, p_gate int, p_free boolean) returns boolean language plpgsql stable as $$
begin
  return sluice.has_taker(p_stream, p_free)
    and sluice.gate_room((select s.gate from sluice.stream s where s.id = p_stream), null, null) > 0
    and sluice.gate_room(p_gate, null, null) > 0;
end $$;

-- Whether tasks of this kind can start sooner or later: a worker serves it, and no total has a number of 0.
create function sluice.may_run(p_stream int, p_gate int) returns boolean language plpgsql stable as $$
begin
  return sluice.has_taker(p_stream, false) and not exists (select from sluice.gate g where g.cap = 0
    and g.id = any (sluice.gates_of(p_gate) || (select s.gate from sluice.stream s where s.id = p_stream)));
end $$;

-- Whether a key has a free slot.
create function sluice.has_room(p_lane bigint) returns boolean language plpgsql stable as $$
begin
  return not exists (select from sluice.lane n where n.id = p_lane and n.used >= sluice.cap_of(n.cap, n.limit_id));
end $$;

-- The kinds that wait at a key, told apart by the key they need next (0 for none), at most 256, and the first of each.
create function sluice.kinds_at(p_lane bigint)
returns table (stream int, gate int, next bigint, id bigint, held smallint, lanes bigint[]) language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  return query
  with recursive kind as (
    (select w.stream, w.gate, coalesce(w.lanes[w.held + 2], 0) as next, w.id, w.held, w.lanes, 1 as n from sluice.wait w
      where w.lane = p_lane and w.lane >= 3458764513820540928
      order by w.stream, w.gate, coalesce(w.lanes[w.held + 2], 0), w.place, w.id limit 1)
    union all
    select x.stream, x.gate, x.next, x.id, x.held, x.lanes, k.n + 1 from kind k cross join lateral (
      select w.stream, w.gate, coalesce(w.lanes[w.held + 2], 0) as next, w.id, w.held, w.lanes from sluice.wait w
      where w.lane = p_lane and w.lane >= 3458764513820540928
        and (w.stream, w.gate, coalesce(w.lanes[w.held + 2], 0)) > (k.stream, k.gate, k.next)
      order by w.stream, w.gate, coalesce(w.lanes[w.held + 2], 0), w.place, w.id limit 1) x where k.n < 256
  ) select k.stream, k.gate, k.next, k.id, k.held, k.lanes from kind k;
end $$;

-- The first of those that wait at a key and are not stuck, or could run again though the keeper has not seen it yet. What
-- is stuck keeps its place. If more than 1,000 that are stuck stand first, the others are looked for by kind.
create function sluice.open_waiters(p_lane bigint, p_n int) returns setof tid language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_found tid[];
begin
  with line as materialized (
    select w.ctid as tid, w.stream, w.gate, w.lanes[w.held + 2:] as later, row_number() over () as n from (
      select x.ctid, x.stream, x.gate, x.lanes, x.held from sluice.wait x
      where x.lane = p_lane order by x.place, x.id limit 1000) w
  ), kind as materialized (
    -- guard: what is stuck is passed over -> test/postgres/yield.test.ts: "tasks that wait at a full total give their key's slots to others, and keep their place"
    select k.stream, k.gate, sluice.is_stuck(k.stream, k.gate) as stuck from (select distinct stream, gate from line) k
  )
  select array(select l.tid from line l join kind k on k.stream = l.stream and k.gate = l.gate
    where not k.stuck and not sluice.needs_full_key(l.stream, l.gate, l.later) order by l.n limit p_n) into v_found;
  if cardinality(v_found) >= p_n or not exists (select from sluice.wait x where x.lane = p_lane offset 1000) then
    return query select unnest(v_found);
    return;
  end if;
  return query
  select w.tid from sluice.kinds_at(p_lane) k cross join lateral (
    select x.ctid as tid, x.place, x.id from sluice.wait x where x.lane = p_lane and x.lane >= 3458764513820540928
      and x.stream = k.stream and x.gate = k.gate and coalesce(x.lanes[x.held + 2], 0) = k.next
    order by x.place, x.id limit p_n) w
  where not sluice.is_stuck(k.stream, k.gate) and not sluice.needs_full_key(k.stream, k.gate, k.lanes[k.held + 2:])
  order by w.place, w.id limit p_n;
end $$;

-- Whether this kind as a whole is stuck, and still cannot run.
create function sluice.is_stuck(p_stream int, p_gate int) returns boolean language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  return exists (select from sluice.stuck s where s.stream = p_stream and s.gate = any (array[0, p_gate]) and s.lane = 0)
    and not sluice.is_open(p_stream, p_gate, false);
end $$;

-- Whether one of the keys that a task needs later is full, and its kind is stuck for that.
create function sluice.needs_full_key(p_stream int, p_gate int, p_later bigint[]) returns boolean language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  if p_later = '{}' then return false; end if;
  -- guard: what needs a full key next is passed over -> test/postgres/yield.test.ts: "tasks of one type that differ in their second key do not keep each other out"
  return exists (select from sluice.stuck s where s.stream = p_stream and s.gate = any (array[0, p_gate])
    and s.lane = any (p_later) and not sluice.has_room(s.lane));
end $$;

-- Kinds that can run again are passed over no more. Nor are those that were for a second, if they can run at all: a total
-- or a key whose slots go from hand to hand has no room at any moment, and a task must stand in its line to be next.
create function sluice.unstick() returns void language plpgsql as $$
declare v_now timestamptz := sluice.clock();
begin
  -- guard: what is stuck tries again -> test/postgres/yield.test.ts: "a task that gave its key back is not overtaken for ever at a busy total"
  delete from sluice.stuck s where case when s.lane = 0 then sluice.is_open(s.stream, s.gate, false) else sluice.has_room(s.lane) end
    or s.at not between v_now - interval '1 second' and v_now and sluice.may_run(s.stream, s.gate);
end $$;

-- When turns were given out: one row. The keeper moves it on twice a second, and whoever has it does what follows.
create table sluice.pulse (
  one boolean primary key default true check (one), at timestamptz not null default '-infinity', turn bigint not null default 0, before bigint not null default 0
);

-- Tasks that have passed their keys and wait for something else (a total, a worker), and those that hold a key and need
-- another that is full, give their slots back if a task that waits for one of them could run now. They are parked, and
-- their kind is passed over for a second or until it can run. They keep their place and their turn. At a total only what
-- has waited for half a second counts as waiting. Returns how many.
create function sluice.yield(p_max int) returns int language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare v sluice.pulse; v_n int := 0; v_token bigint := (random() * 1000000000)::bigint;
begin
  insert into sluice.pulse default values on conflict do nothing;
  select * into v from sluice.pulse for update skip locked;
  if not found then return 0; end if;
  -- Ahead of the clock: it was set back, and no task would yield until it has caught up.
  -- guard: a pulse ahead of the clock -> test/postgres/clock.test.ts: "after the clock was set back tasks still give their key's slots to others"
  if v.at not between sluice.clock() - interval '500 ms' and sluice.clock() then
    v.before := v.turn;
    v.turn := sluice.own_turn((select last_value from sluice.task_id)) + (select last_value from sluice.turn);
    update sluice.pulse set at = sluice.clock(), turn = v.turn, before = v.before;
  end if;
  with holder as materialized (
    select * from sluice.holders_at_totals(p_max, v.before, v_token) union select * from sluice.holders_at_keys(p_max)
  ), wanted as materialized (
    -- guard: waiting tasks yield -> test/postgres/yield.test.ts: "tasks that wait for a second key give the slots of the first to others"
    select h.* from (select distinct lanes, stream, gate, waits_at from holder) h
    where sluice.is_wanted(h.lanes, h.stream, h.gate, h.waits_at)
  ), chosen as materialized (
    select h.* from holder h join wanted w
      on w.lanes = h.lanes and w.stream = h.stream and w.gate = h.gate and w.waits_at = h.waits_at limit p_max
  ), from_gated as (
    delete from sluice.gated where ctid = any (array(select g.ctid from sluice.gated g
      where g.ctid = any (array(select c.tid from chosen c where c.source = 'g')) for update skip locked)) returning id
  ), from_ready as (
    delete from sluice.ready where ctid = any (array(select r.ctid from sluice.ready r
      where r.ctid = any (array(select c.tid from chosen c where c.source = 'r')) for update skip locked)) returning id
  ), from_wait as (
    delete from sluice.wait where ctid = any (array(select w.ctid from sluice.wait w
      where w.ctid = any (array(select c.tid from chosen c where c.source = 'w')) for update skip locked)) returning id
  ), gone as materialized (
    select c.*, case when c.lanes[1] >> 60 = 1 then 1 else 0 end as held from chosen c
    where c.id in (select id from from_gated union all select id from from_ready union all select id from from_wait)
  ), parked as (
    insert into sluice.park (id, stream, gate, rank, attempt, held, lane, turn)
    select id, stream, gate, rank, attempt, held, waits_at, turn from gone
  ), kinds as (
    insert into sluice.stuck (stream, gate, lane) select distinct g.stream, g.gate, g.waits_at from gone g order by 1, 2, 3
    on conflict (stream, gate, lane) do update set at = excluded.at
  ), notes as (
    insert into sluice.dirty (lane, limit_id, freed)
    select l, 0, count(*) from gone g cross join lateral unnest(g.lanes[g.held + 1:]) l group by l
  )
  select count(*) into v_n from gone;
  return v_n;
end $$;

-- A task that holds slots of keys and does not run. source: its table. waits_at: the full key that it needs, 0 for none.
create type sluice.holder as (
  source text, tid tid, id bigint, stream int, gate int, rank smallint, attempt smallint, lanes bigint[], waits_at bigint, turn bigint);

-- Those that stand at a total without room, or in a stream whose workers have none, since before the given turn. Of each
-- kind at most p_max: half of them the last ones, the others from a random place on, so that each has its chance.
create function sluice.holders_at_totals(p_max int, p_before bigint, p_token bigint) returns setof sluice.holder
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare v_start int := sluice.turn_of(p_token); v_share float8 := random();
begin
  return query
  with laned as materialized (
    select s.id from sluice.stream s where s.laned
  ), shut as materialized (
    select l.id as stream, k.gate from laned l
    cross join (values (v_start, 2147483647), (-2147483648, v_start - 1)) part(low, high) cross join lateral (
      with recursive kind as (
        -- Where no task at a total holds a slot of a key, as with plain groups, there is nothing to give back.
        (select g.gate, 1 as n from sluice.gated g where g.stream = l.id and g.gate >= part.low and g.gate <= part.high
          and exists (select from sluice.gated h where h.lanes[cardinality(h.lanes)] >> 60 > 1) order by g.gate limit 1)
        union all
        select x.gate, p.n + 1 from kind p cross join lateral (
          select g.gate from sluice.gated g
          where g.stream = l.id and g.gate > p.gate and g.gate <= part.high order by g.gate limit 1) x where p.n < 256
      ) select gate from kind) k
    where not sluice.is_open(l.id, k.gate, true)
  ), idle as materialized (
    select l.id from laned l
    where exists (select from sluice.ready r where r.stream = l.id) and not sluice.is_open(l.id, 0, true)
  )
  select 'g', x.* from shut k
  cross join lateral (select g.rank, g.turn from sluice.gated g
    where g.stream = k.stream and g.gate = k.gate order by g.rank desc, g.turn desc limit 1) last
  cross join lateral (select g.turn from sluice.gated g
    where g.stream = k.stream and g.gate = k.gate and g.rank = last.rank order by g.turn limit 1) first
  cross join lateral (values (last.turn), (first.turn + (v_share * (last.turn - first.turn))::bigint)) most(turn)
  cross join lateral (
    select g.ctid, g.id, g.stream, g.gate, g.rank, g.attempt, g.lanes, 0::bigint, g.turn from sluice.gated g
    where g.stream = k.stream and g.gate = k.gate and (g.rank, g.turn) <= (last.rank, most.turn)
      and g.turn <= p_before and g.lanes[cardinality(g.lanes)] >> 60 = 3
    order by g.rank desc, g.turn desc limit p_max / 2) x
  union
  select 'r', x.* from idle l
  cross join lateral (select r.rank, r.turn from sluice.ready r
    where r.stream = l.id order by r.rank desc, r.turn desc limit 1) last
  cross join lateral (select r.turn from sluice.ready r
    where r.stream = l.id and r.rank = last.rank order by r.turn limit 1) first
  cross join lateral (values (last.turn), (first.turn + (v_share * (last.turn - first.turn))::bigint)) most(turn)
  cross join lateral (
    select r.ctid, r.id, r.stream, 0, r.rank, r.attempt, r.lanes, 0::bigint, r.turn from sluice.ready r
    where r.stream = l.id and (r.rank, r.turn) <= (last.rank, most.turn)
      and r.turn <= p_before and r.lanes[cardinality(r.lanes)] >> 60 = 3
    order by r.rank desc, r.turn desc limit p_max / 2) x;
end $$;

-- Those that hold a key and need another that is full, at most p_max, chosen in the same way.
create function sluice.holders_at_keys(p_max int) returns setof sluice.holder
language plpgsql stable set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare v_low bigint; v_high bigint; v_share float8 := random();
begin
  select w.id into v_high from sluice.wait w where w.held > 0 and w.lanes[w.held] >= 3458764513820540928 order by w.id desc limit 1;
  if not found then return; end if;
  select w.id into v_low from sluice.wait w where w.held > 0 and w.lanes[w.held] >= 3458764513820540928 order by w.id limit 1;
  return query
  select distinct 'w', x.tid, x.id, x.stream, x.gate, x.rank, x.attempt, x.lanes[1:x.held], f.lane, x.turn
  from (values (v_high), (v_low + (v_share * (v_high - v_low))::bigint)) most(id) cross join lateral (
    select w.ctid as tid, w.id, w.stream, w.gate, w.rank, w.attempt, w.lanes, w.held, w.turn from sluice.wait w
    where w.held > 0 and w.lanes[w.held] >= 3458764513820540928 and w.id <= most.id order by w.id desc limit p_max / 2) x
  -- guard: what is on its way keeps its slots -> test/postgres/yield.test.ts: "a task on its way to a second key with room keeps its place"
  cross join lateral (select m.lane from unnest(x.lanes[x.held + 1:]) with ordinality m(lane, n)
    where not sluice.has_room(m.lane) order by m.n limit 1) f;
end $$;

-- Whether one of these keys is full, and a task of another kind that waits for it could run now. p_waits_at: the key that
-- the holder waits for, 0 for none.
create function sluice.is_wanted(p_lanes bigint[], p_stream int, p_gate int, p_waits_at bigint) returns boolean language plpgsql stable as $$
begin
  return exists (select from unnest(p_lanes) l(id) cross join lateral (select n.used, sluice.cap_of(n.cap, n.limit_id) as cap from sluice.lane n where n.id = l.id limit 1) n
    cross join lateral sluice.kinds_at(l.id) k
    where l.id >= 3458764513820540928 and n.used >= n.cap and (k.stream, k.gate, k.next) <> (p_stream, p_gate, p_waits_at)
      and not exists (select from unnest(k.lanes[k.held + 2:]) m(id) where not sluice.has_room(m.id))
      and sluice.is_open(k.stream, k.gate, true));
end $$;
