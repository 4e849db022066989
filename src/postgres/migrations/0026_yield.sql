-- What could run, runs. A task that needs several things can wait for the last of them while it keeps the first from
-- others, or be overtaken for ever by tasks that need only one of them. The keeper sees to both, at most twice a second,
-- one worker at a time; none of this is on the way of a claim unless there is something to see to.

-- Slots kept for tasks that need several at once: from `since` on for span_ms, then not for as long, so that what others
-- could use does not lie idle for long when one of the totals stays full; then for twice as long. gates: its totals.
create table sluice.kept (
  id bigint primary key, gates int[] not null, since timestamptz not null, span_ms int not null
);

-- Whether a live worker could take one more task of this stream.
create function sluice.has_taker(p_stream int) returns boolean language plpgsql stable as $$
begin
  return exists (select from sluice.stream s where s.id = p_stream and not s.paused)
    and exists (select from sluice.worker w where w.streams @> array[p_stream] and w.capacity_available > 0
      and not w.draining and w.pressure <> 'stopped' and w.expires_at > sluice.clock());
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

-- Tasks that need several totals, are first at all of them, and find at least one full: at most 64 kinds of each stream
-- are looked at (sets come first by their number), and 500 streams. They may never find all free at once, because each total is used by others in turn.
create function sluice.first_at_all() returns table (id bigint, gates int[]) language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
begin
  return query
  with recursive busy as (
    (select g.stream, 1 as n from sluice.gated g order by g.stream limit 1)
    union all
    select x.stream, b.n + 1 from busy b cross join lateral (
      select g.stream from sluice.gated g where g.stream > b.stream order by g.stream limit 1) x where b.n < 500
  ), head as (
    select b.stream, s.gate as stream_gate, h.gate, h.rank, h.turn, h.id, 1 as n
    from busy b cross join lateral (select k.gate from sluice.stream k where k.id = b.stream limit 1) s cross join lateral (
      select g.gate, g.rank, g.turn, g.id from sluice.gated g where g.stream = b.stream order by g.gate, g.rank, g.turn limit 1) h
    union all
    select p.stream, p.stream_gate, h.gate, h.rank, h.turn, h.id, p.n + 1 from head p cross join lateral (
      select g.gate, g.rank, g.turn, g.id from sluice.gated g where g.stream = p.stream and g.gate > p.gate order by g.gate, g.rank, g.turn limit 1) h
    where p.n < 64 and (p.gate < 0 or p.stream_gate > 0)
  )
  select h.id, t.gates from head h
  cross join lateral (select array(select distinct g from unnest(sluice.gates_of(h.gate) || h.stream_gate) g where g > 0 order by g) as gates) t
  where cardinality(t.gates) > 1 and sluice.has_taker(h.stream)
    and exists (select from unnest(t.gates) g where sluice.gate_room(g, null, null, h.id) <= 0)
    and not exists (select from unnest(t.gates) g where not sluice.is_first_at(g, h.rank, h.turn));
end $$;

-- Keeps slots for those, a second after they were first seen, and for tasks that a worker has emptied itself for. Changes
-- only counters, which it takes in the order of their ids and skips when busy: it holds no other lock but the barrier.
create function sluice.keep_slots() returns void language plpgsql as $$
declare v_now timestamptz := sluice.clock();
begin
  if not exists (select from sluice.gated) and not exists (select from sluice.suspect) and not exists (select from sluice.kept) then return; end if;
  delete from sluice.kept k where not exists (select from sluice.suspect s where s.id = k.id and s.reserved_by is not null)
    and not exists (select from sluice.task t where t.id = k.id and sluice.gated_at(t.id, t.stream, t.gate, t.rank, t.lanes) is not null);
  insert into sluice.kept (id, gates, since, span_ms)
  select f.id, f.gates, v_now + interval '1 second', 2000 from sluice.first_at_all() f
  union all
  select s.id, array(select distinct g from unnest(sluice.gates_of(t.gate) || st.gate) g where g > 0 order by g), v_now, 60000
  from sluice.suspect s join sluice.task t on t.id = s.id join sluice.stream st on st.id = t.stream where s.reserved_by is not null
  order by 1 on conflict (id) do nothing;
  update sluice.kept k set since = v_now, span_ms = least(2 * k.span_ms, 60000) where v_now >= k.since + 2 * k.span_ms * interval '1 ms';
  update sluice.gate g set kept_for = w.id from (
    select x.gate, (select min(k.id) from sluice.kept k where x.gate = any (k.gates)
        and v_now >= k.since and v_now < k.since + k.span_ms * interval '1 ms') as id
    from (select unnest(k.gates) as gate from sluice.kept k union select c.id from sluice.gate c where c.kept_for is not null) x
  ) w
  where g.id = w.gate and g.kept_for is distinct from w.id
    -- In one list, and not by an OR: that would look at every counter.
    and g.id = any (array(select l.id from sluice.gate l where l.id = any (array(
        select unnest(k.gates) from sluice.kept k union select c.id from sluice.gate c where c.kept_for is not null))
      order by l.id for update skip locked));
end $$;

-- Whether tasks of this kind could start now: its totals have room, and a worker can take one.
create function sluice.is_open(p_stream int, p_gate int) returns boolean language plpgsql stable as $$
begin
  return sluice.has_taker(p_stream) and sluice.gate_room((select s.gate from sluice.stream s where s.id = p_stream), null, null) > 0
    and sluice.gate_room(p_gate, null, null) > 0;
end $$;

-- The kinds that wait at a key, at most 64, and the first of each.
create function sluice.kinds_at(p_lane bigint) returns table (stream int, gate int, id bigint, held smallint, lanes bigint[]) language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  return query
  with recursive kind as (
    (select w.stream, w.gate, w.id, w.held, w.lanes, 1 as n from sluice.wait w
      where w.lane = p_lane and w.lane >= 3458764513820540928 order by w.stream, w.gate, w.place, w.id limit 1)
    union all
    select x.stream, x.gate, x.id, x.held, x.lanes, k.n + 1 from kind k cross join lateral (
      select w.stream, w.gate, w.id, w.held, w.lanes from sluice.wait w
      where w.lane = p_lane and w.lane >= 3458764513820540928 and (w.stream, w.gate) > (k.stream, k.gate)
      order by w.stream, w.gate, w.place, w.id limit 1) x where k.n < 64
  ) select k.stream, k.gate, k.id, k.held, k.lanes from kind k;
end $$;

-- The first of those that wait at a key and are of no kind that is stuck, unless it can run again and the keeper has not
-- seen it yet. What is stuck keeps its place.
create function sluice.open_waiters(p_lane bigint, p_n int) returns setof tid language plpgsql stable
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  return query
  select w.tid from sluice.kinds_at(p_lane) k cross join lateral (
    select x.ctid as tid, x.place, x.id from sluice.wait x where x.lane = p_lane and x.lane >= 3458764513820540928
      and x.stream = k.stream and x.gate = k.gate order by x.place, x.id limit p_n) w
  -- guard: what is stuck is passed over -> test/postgres/yield.test.ts: "tasks that wait at a full total give their key's slots to others, and keep their place"
  where not exists (select from sluice.stuck s where s.stream = k.stream and s.gate = any (array[0, k.gate])) or sluice.is_open(k.stream, k.gate)
  order by w.place, w.id limit p_n;
end $$;

-- Kinds that can run again are passed over no more. Lanes that have free slots only because of them were postponed, and are
-- looked at with the next notes.
create function sluice.unstick() returns void language plpgsql as $$
begin
  delete from sluice.stuck s where sluice.is_open(s.stream, s.gate);
end $$;

-- When turns were given out: one row. The keeper moves it on twice a second, and whoever has it does what follows.
create table sluice.pulse (
  one boolean primary key default true check (one), at timestamptz not null default '-infinity', turn bigint not null default 0, before bigint not null default 0
);

-- Tasks that have passed their keys and wait for something else (a total, a worker), and those that wait at a second key,
-- give their slots back if somebody else who waits for one of them could run now. They are parked, and their kind is
-- passed over until it can run: so they keep their place, and are not asked again and again. Only what has waited for
-- half a second counts as waiting. Returns how many.
create function sluice.yield(p_max int) returns int language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare v sluice.pulse; v_n int := 0;
begin
  insert into sluice.pulse default values on conflict do nothing;
  select * into v from sluice.pulse for update skip locked;
  if not found then return 0; end if;
  if v.at <= sluice.clock() - interval '500 ms' then
    v.before := v.turn;
    v.turn := sluice.own_turn((select last_value from sluice.task_id)) + (select last_value from sluice.turn);
    update sluice.pulse set at = sluice.clock(), turn = v.turn, before = v.before;
  end if;
  with recursive kind as (
    -- Where no task at a total holds a slot of a key, as with plain groups, there is nothing to give back.
    (select g.stream, g.gate, 1 as n from sluice.gated g
      where exists (select from sluice.gated h where h.lanes[cardinality(h.lanes)] >> 60 > 1)
      order by g.stream, g.gate limit 1)
    union all
    select x.stream, x.gate, k.n + 1 from kind k cross join lateral (
      select g.stream, g.gate from sluice.gated g where (g.stream, g.gate) > (k.stream, k.gate) order by g.stream, g.gate limit 1) x where k.n < 1000
  ), shut as materialized (
    select k.stream, k.gate from kind k join sluice.stream s on s.id = k.stream and s.laned where not sluice.is_open(k.stream, k.gate)
    union all
    select s.id, 0 from sluice.stream s where s.laned and exists (select from sluice.ready r where r.stream = s.id) and not sluice.is_open(s.id, 0)
  ), holder as materialized (
    select 'g' as source, x.* from shut k cross join lateral (
      select g.ctid as tid, g.id, g.stream, g.gate, g.rank, g.attempt, g.lanes from sluice.gated g where k.gate <> 0 and g.stream = k.stream and g.gate = k.gate
        and g.turn <= v.before and g.lanes[cardinality(g.lanes)] >> 60 = 3 order by g.rank desc, g.turn desc limit p_max) x
    union all
    select 'r', x.* from shut k cross join lateral (
      select r.ctid, r.id, r.stream, 0, r.rank, r.attempt, r.lanes from sluice.ready r where k.gate = 0 and r.stream = k.stream
        and r.turn <= v.before and r.lanes[cardinality(r.lanes)] >> 60 = 3 order by r.rank desc, r.turn desc limit p_max) x
    union all
    (select 'w', w.ctid, w.id, w.stream, w.gate, w.rank, w.attempt, w.lanes[1:w.held] from sluice.wait w
      where w.held > 0 and w.lanes[w.held] >= 3458764513820540928 order by w.id desc limit p_max)
  ), chosen as materialized (
    -- guard: waiting tasks yield -> test/postgres/yield.test.ts: "tasks that wait for a second key give the slots of the first to others"
    select h.* from holder h where sluice.is_wanted(h.lanes, h.stream, h.gate) limit p_max
  ), from_gated as (
    delete from sluice.gated where ctid = any (array(select g.ctid from sluice.gated g where g.ctid = any (array(select c.tid from chosen c where c.source = 'g')) for update skip locked)) returning id
  ), from_ready as (
    delete from sluice.ready where ctid = any (array(select r.ctid from sluice.ready r where r.ctid = any (array(select c.tid from chosen c where c.source = 'r')) for update skip locked)) returning id
  ), from_wait as (
    delete from sluice.wait where ctid = any (array(select w.ctid from sluice.wait w where w.ctid = any (array(select c.tid from chosen c where c.source = 'w')) for update skip locked)) returning id
  ), gone as materialized (
    select c.*, case when c.lanes[1] >> 60 = 1 then 1 else 0 end as held from chosen c
    where c.id in (select id from from_gated union all select id from from_ready union all select id from from_wait)
  ), parked as (
    insert into sluice.park (id, stream, gate, rank, attempt, held) select id, stream, gate, rank, attempt, held from gone
  ), kinds as (
    insert into sluice.stuck select distinct g.stream, g.gate from gone g order by 1, 2 on conflict do nothing
  ), notes as (
    insert into sluice.dirty (lane, limit_id, freed) select l, 0, count(*) from gone g cross join lateral unnest(g.lanes[g.held + 1:]) l group by l
  )
  select count(*) into v_n from gone;
  return v_n;
end $$;

-- Whether one of these keys is full, and somebody of another kind who waits for it could run now.
create function sluice.is_wanted(p_lanes bigint[], p_stream int, p_gate int) returns boolean language plpgsql stable as $$
begin
  return exists (select from unnest(p_lanes) l(id) cross join lateral (select n.used, sluice.cap_of(n.cap, n.limit_id) as cap from sluice.lane n where n.id = l.id limit 1) n
    cross join lateral sluice.kinds_at(l.id) k
    where l.id >= 3458764513820540928 and n.used >= n.cap and (k.stream, k.gate) <> (p_stream, p_gate)
      and not exists (select from unnest(k.lanes[k.held + 2:]) m(id) join sluice.lane x on x.id = m.id where x.used >= sluice.cap_of(x.cap, x.limit_id))
      and sluice.is_open(k.stream, k.gate));
end $$;
