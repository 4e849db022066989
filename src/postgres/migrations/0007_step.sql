-- Step: settle these, admit once, claim n more. One round trip, one transaction.
--
-- A claim takes the heads of the sources its worker serves, merged by (rank, turn). A source is
-- ready(stream), or gated(stream, gate) for each gate with room; the stream's own limit applies to
-- both. At most 16 sources per claim; the caller turns p_from so that every stream gets its turn.

-- Slots a gate could give us: an unlocked read, a hint. The truth is read under the counter's lock. A slot that is
-- kept for a task counts only for that task, p_head.
-- (plpgsql, like all that a step calls: its plan is kept, a SQL function that cannot be inlined is
-- planned again by every statement.)
create function sluice.gate_room(p_gate int, p_own_gates int[], p_own_n int[], p_head bigint default null) returns int language plpgsql stable as $$
begin
  if p_gate < 0 then return (select coalesce(min(sluice.gate_room(x, p_own_gates, p_own_n, p_head)), 2147483647) from unnest(sluice.gates_of(p_gate)) x); end if;
  return coalesce((
    select least(2147483647, g.cap::bigint - g.used + coalesce((select sum(c.n) from sluice.credit c where c.gate = p_gate), 0)
      + coalesce((select sum(o.n) from unnest(p_own_gates, p_own_n) o(gate, n) where o.gate = p_gate), 0)
      -- guard: a kept slot is for one task -> test/postgres/kept.test.ts: "a freed slot is kept for the task that is first at all its totals"
      - case when g.kept_for is distinct from p_head and g.kept_for is not null then 1 else 0 end)::int
    from sluice.gate g where g.id = p_gate), 2147483647);
end $$;

-- Until when all slots of a gate were out, the last time: infinity if they are (what a step has freed itself is not back
-- yet), -infinity if they never were. Out of them all, it opened with the first credit; above a lowered number with a
-- later one, for which the last is taken. An unlocked read, like the one above.
create function sluice.full_until(p_gate int) returns timestamptz language plpgsql stable as $$
begin
  return coalesce((
    select case when g.used < g.cap then g.full_at
      else coalesce((select case when sum(c.n) <= g.used - g.cap then null when g.used = g.cap then min(c.at) else max(c.at) end from sluice.credit c where c.gate = p_gate), 'infinity') end
    from sluice.gate g where g.id = p_gate), '-infinity');
end $$;

-- The head of ready(stream), or of gated(stream, gate). room and stream_room: what its gate and its
-- stream's gate could give.
create type sluice.source as (stream int, gate int, stream_gate int, rank smallint, turn bigint, id bigint, room int, stream_room int);

-- Which of many streams have something to take, by walking the streams of what there is: a worker that serves thousands of
-- types, of which few have tasks, looks at few. Null if there are too many for that to be of use.
create function sluice.busy_streams(p_streams int[]) returns int[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_found int[]; v_all int[] := '{}';
begin
  for v_table in 1..2 loop
    with recursive walk as (
      (select x.stream, 1 as n from (
        (select r.stream from sluice.ready r where v_table = 1 order by r.stream limit 1) union all
        (select g.stream from sluice.gated g where v_table = 2 order by g.stream limit 1)) x)
      union all
      select x.stream, w.n + 1 from walk w cross join lateral (
        (select r.stream from sluice.ready r where v_table = 1 and r.stream > w.stream order by r.stream limit 1) union all
        (select g.stream from sluice.gated g where v_table = 2 and g.stream > w.stream order by g.stream limit 1)) x
      where w.n < 65
    ) select array_agg(stream) into v_found from walk;
    if cardinality(v_found) > 64 then return null; end if;
    v_all := v_all || v_found;
  end loop;
  return array(select u.stream from unnest(p_streams) with ordinality u(stream, i) where u.stream = any (v_all) order by u.i);
end $$;

-- The only source of a stream whose tasks need several totals: all that wait stand at the gate of which this step has
-- just freed slots. Null if there is more to look at.
create function sluice.sole_source(p_stream int, p_own_gates int[], p_own_n int[]) returns sluice.source
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v sluice.source;
  v_stream_gate int := (select s.gate from sluice.stream s where s.id = p_stream and not s.paused);
  v_gate int := (select g.gate from sluice.gated g where g.stream = p_stream order by g.gate limit 1);
begin
  if v_stream_gate is null or v_gate is null
      or exists (select from sluice.gated g where g.stream = p_stream and g.gate > v_gate)
      or exists (select from sluice.ready r where r.stream = p_stream) then return null; end if;
  if v_stream_gate = v_gate or v_gate < 0 and v_stream_gate = any (sluice.gates_of(v_gate)) then v_stream_gate := 0; end if;
  if exists (select from unnest(p_own_gates) o where o <> v_stream_gate and o <> all (sluice.gates_of(v_gate))) then
    return null;
  end if;
  select g.rank, g.turn, g.id into v.rank, v.turn, v.id from sluice.gated g
  where g.stream = p_stream and g.gate = v_gate order by g.rank, g.turn limit 1;
  if not found then return null; end if;
  v.stream := p_stream; v.gate := v_gate; v.stream_gate := v_stream_gate;
  v.room := sluice.gate_room(v_gate, p_own_gates, p_own_n, v.id);
  v.stream_room := case when v_stream_gate = 0 then 2147483647
    else sluice.gate_room(v_stream_gate, p_own_gates, p_own_n, v.id) end;
  return v;
end $$;

-- The sources that have something to take, at most 16. own_*: slots that this step has just freed and may
-- use again; their gates are looked at first. Of a stream's other gates at most 128 are looked at, from
-- one that the random token decides. Those of a stream with many totals are found by open_kinds.
create function sluice.sources(p_streams int[], p_own_gates int[], p_own_n int[], p_token bigint) returns sluice.source[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_sole sluice.source; v_from int; v_own int[] := coalesce(p_own_gates, '{}');
  -- Where to begin with those, too: at most 8, so that others are not left out for ever.
  v_turn int := 1 + p_token % greatest(1, cardinality(p_own_gates));
begin
  -- The life of one limited type: everything that waits stands at the gate of which this step has just freed slots.
  if cardinality(p_streams) = 1 and cardinality(p_own_gates) = 1 then
    select st.id, p_own_gates[1], 0, h.rank, h.turn, h.id, least(2147483647, g.cap::bigint - g.used + coalesce((select sum(c.n) from sluice.credit c where c.gate = g.id), 0) + p_own_n[1]), 2147483647
    into v_sole from sluice.stream st
    cross join lateral (select r.rank, r.turn, r.id from sluice.gated r where r.stream = st.id and r.gate = p_own_gates[1] order by r.rank, r.turn limit 1) h
    cross join lateral (select k.id, k.cap, k.used from sluice.gate k where k.id = p_own_gates[1] and k.kept_for is null limit 1) g
    where st.id = p_streams[1] and not st.paused and st.gate = any (array[0, p_own_gates[1]])
      and not exists (select from sluice.ready r where r.stream = p_streams[1])
      and not exists (select from sluice.gated r where r.stream = p_streams[1] and r.gate < p_own_gates[1])
      and not exists (select from sluice.gated r where r.stream = p_streams[1] and r.gate > p_own_gates[1]);
    if found then return case when v_sole.room > 0 then array[v_sole] end; end if;
  elsif cardinality(p_streams) = 1 and cardinality(p_own_gates) > 1 then
    v_sole := sluice.sole_source(p_streams[1], p_own_gates, p_own_n);
    if v_sole.stream is not null then
      return case when least(v_sole.room, v_sole.stream_room) > 0 then array[v_sole] end;
    end if;
  end if;
  if cardinality(p_streams) > 32 then p_streams := coalesce(sluice.busy_streams(p_streams), p_streams); end if;
  -- Where no task waits at a gate, the walk over gates is left out: it is most of what a look costs.
  if not exists (select from sluice.gated) then
    return (select array_agg(z) from (
      select u.stream, 0 as gate, s.gate as stream_gate, h.rank, h.turn, h.id, 2147483647 as room, v.room as stream_room from unnest(p_streams) u(stream)
      cross join lateral (select st.gate from sluice.stream st where st.id = u.stream and not st.paused limit 1) s
      cross join lateral (select r.rank, r.turn, r.id from sluice.ready r where r.stream = u.stream order by r.rank, r.turn limit 1) h
      cross join lateral (select case when s.gate = 0 then 2147483647 else sluice.gate_room(s.gate, p_own_gates, p_own_n, h.id) end as room) v
      where v.room > 0 limit 16) z);
  end if;
  v_from := sluice.turn_of(p_token);
  return (select array_agg(z) from (
    select u.stream, h.gate, case when h.gate = s.gate or h.gate < 0 and s.gate = any (sluice.gates_of(h.gate)) then 0 else s.gate end as stream_gate, h.rank, h.turn, h.id, h.room, v.room as stream_room
    from unnest(p_streams) u(stream)
    cross join lateral (select st.gate, st.many from sluice.stream st where st.id = u.stream and not st.paused limit 1) s
    cross join lateral (
      (select 0 as gate, r.rank, r.turn, r.id, 2147483647 as room from sluice.ready r where r.stream = u.stream order by r.rank, r.turn limit 1)
      union all
      (select o.gate, g.rank, g.turn, g.id, v.room from unnest(v_own[v_turn:] || v_own[:v_turn - 1]) o(gate)
        cross join lateral (select r.rank, r.turn, r.id from sluice.gated r where r.stream = u.stream and r.gate = o.gate order by r.rank, r.turn limit 1) g
        cross join lateral (select sluice.gate_room(o.gate, p_own_gates, p_own_n, g.id) as room) v
        where v.room > 0 limit 8)
      union all
      (select g.gate, g.rank, g.turn, g.id, v.room from (select * from (values (v_from, 2147483647), (-2147483648, v_from - 1)) t(low, high) where not s.many and exists (select from sluice.gated x where x.stream = u.stream)) turn cross join lateral (
        with recursive heads as (
          (select r.gate, r.rank, r.turn, r.id, 1 as n from sluice.gated r where r.stream = u.stream and r.gate >= turn.low and r.gate <= turn.high order by r.gate, r.rank, r.turn limit 1)
          union all
          select x.gate, x.rank, x.turn, x.id, h.n + 1 from heads h cross join lateral (
            select r.gate, r.rank, r.turn, r.id from sluice.gated r where r.stream = u.stream and r.gate > h.gate and r.gate <= turn.high order by r.gate, r.rank, r.turn limit 1) x
          where h.n < 64
        ) select * from heads) g
        cross join lateral (select case when g.gate = any (v_own) then 0 else sluice.gate_room(g.gate, p_own_gates, p_own_n, g.id) end as room) v
        where v.room > 0)
      union all
      (select k.gate, k.rank, k.turn, k.id, k.room from sluice.open_kinds(u.stream, p_own_gates, p_own_n, p_token) k
        where s.many and k.gate <> all (v_own))
    ) h
    cross join lateral (select case when s.gate = 0 then 2147483647 else sluice.gate_room(s.gate, p_own_gates, p_own_n, h.id) end as room) v
    where v.room > 0
    limit 16) z);
end $$;

-- Some gate to begin with, by a random token.
create function sluice.turn_of(p_token bigint) returns int language plpgsql stable as $$
declare v_low int := (select min(id) from sluice.gate_set); v_high int := (select max(id) from sluice.limits);
begin
  v_low := coalesce(v_low, 0); v_high := coalesce(v_high, 0);
  return v_low + ((p_token >> 2) % (v_high - v_low + 1))::int;
end $$;

-- Where the head of a source was, some claims ago.
create type sluice.spot as (stream int, gate int, rank smallint, turn bigint);

-- The same for a worker whose looks take long, because some old snapshot keeps the rows alive that were
-- claimed since: each source is looked at from where its head was. What has come to stand before that is
-- found by the next full look. Gates of which this step has freed slots are looked at first, known or not.
create function sluice.sources_from(p_spots sluice.spot[], p_streams int[], p_own_gates int[], p_own_n int[]) returns sluice.source[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  return (select array_agg(z) from (
    select u.stream, u.gate, case when u.gate = s.gate or u.gate < 0 and s.gate = any (sluice.gates_of(u.gate)) then 0 else s.gate end as stream_gate, h.rank, h.turn, h.id, v.room, v.stream_room
    from (
      select s.stream, o.gate, (-32768)::smallint as rank, 0::bigint as turn from unnest(p_own_gates[:8]) o(gate) cross join unnest(p_streams) s(stream)
      where not exists (select from unnest(p_spots) x where x.stream = s.stream and x.gate = o.gate)
      union all
      select * from unnest(p_spots)
    ) u
    cross join lateral (select st.gate from sluice.stream st where st.id = u.stream and not st.paused limit 1) s
    cross join lateral (
      (select r.rank, r.turn, r.id from sluice.ready r where u.gate = 0 and r.stream = u.stream and (r.rank, r.turn) >= (u.rank, u.turn) order by r.rank, r.turn limit 1)
      union all
      (select r.rank, r.turn, r.id from sluice.gated r where u.gate <> 0 and r.stream = u.stream and r.gate = u.gate and (r.rank, r.turn) >= (u.rank, u.turn) order by r.rank, r.turn limit 1)
    ) h
    cross join lateral (
      select case when u.gate = 0 then 2147483647 else sluice.gate_room(u.gate, p_own_gates, p_own_n, h.id) end as room,
        case when s.gate = 0 then 2147483647 else sluice.gate_room(s.gate, p_own_gates, p_own_n, h.id) end as stream_room) v
    where v.room > 0 and v.stream_room > 0
    limit 16) z);
end $$;

-- Streams of other live workers, that hold tasks of these gates: a slot may be worth more there (attack 11). capacity:
-- how many tasks those workers can take. A stream that nobody serves, or only workers that claim no more, is not asked:
-- the slot would lie idle.
create function sluice.rivals(p_gates int[], p_streams int[], out streams int[], out capacity int[]) language plpgsql as $$
begin
  -- The common case, a limit of one type or of types that we all serve, is told by the index alone.
  if not exists (select from sluice.gate_stream gs where gs.gate = any (p_gates) and gs.stream <> all (p_streams)) then return; end if;
  select array_agg(x.stream), array_agg(x.capacity) into streams, capacity from (
    select gs.stream, w.capacity from (select distinct g.stream from sluice.gate_stream g where g.gate = any (p_gates) and g.stream <> all (p_streams)) gs
    cross join lateral (
      select least(coalesce(sum(w.capacity_available), 0), 2147483647)::int as capacity from sluice.worker w
      where not w.draining and w.pressure <> 'stopped' and w.streams @> array[gs.stream] and w.expires_at > sluice.clock()) w
    where w.capacity > 0) x;
end $$;

-- The heads of rivals at gates that were full a moment ago. What lay free for longer was left to them long enough: nobody
-- takes it, so their workers may be frozen.
create function sluice.rival_sources(p_gates int[], p_streams int[], p_own_gates int[], p_own_n int[], p_token bigint) returns sluice.source[] language plpgsql as $$
declare
  v_rivals record; v_late timestamptz := sluice.clock() - interval '1 second';
  v_busy int[] := array(select g from unnest(p_gates) g where sluice.full_until(g) > v_late);
begin
  if v_busy = '{}' then return null; end if;
  select * into v_rivals from sluice.rivals(v_busy, p_streams);
  if v_rivals.streams is null then return null; end if;
  -- No more of each than its workers can take.
  return (select array_agg(row(x.stream, x.gate, x.stream_gate, x.rank, x.turn, x.id, least(x.room, r.capacity), x.stream_room)::sluice.source)
    from unnest(sluice.sources(v_rivals.streams, p_own_gates, p_own_n, p_token)) x
    join unnest(v_rivals.streams, v_rivals.capacity) r(stream, capacity) on r.stream = x.stream
    where exists (select from unnest(sluice.gates_of(x.gate) || x.stream_gate) g where g = any (v_busy)));
end $$;

-- The best candidates of all sources, in order: of each source at most p_depth, and none after the given place. What
-- another transaction has in hand is passed over: nobody can take it now.
-- guard: rivals: what is in hand cannot be taken -> test/postgres/turns.test.ts: "a slot does not lie idle for another worker's task that an open transaction has in hand"
create function sluice.candidates(p_sources sluice.source[], p_depth int, p_rank smallint, p_turn bigint)
returns table (i bigint, rank smallint, turn bigint) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  return query
  select s.i, h.rank, h.turn
  from unnest(p_sources) with ordinality s(stream, gate, stream_gate, rank, turn, id, room, stream_room, i)
  cross join lateral (
    (select r.rank, r.turn from sluice.ready r where s.gate = 0 and r.stream = s.stream and (r.rank, r.turn) >= (s.rank, s.turn)
      and (r.xmax = 0 or sluice.has_ended(r.xmax::text::bigint)) order by r.rank, r.turn limit least(p_depth, s.room, s.stream_room))
    union all
    (select r.rank, r.turn from sluice.gated r where s.gate <> 0 and r.stream = s.stream and r.gate = s.gate and (r.rank, r.turn) >= (s.rank, s.turn)
      and (r.xmax = 0 or sluice.has_ended(r.xmax::text::bigint)) order by r.rank, r.turn limit least(p_depth, s.room, s.stream_room))) h
  -- Not in the scans: an index scan does not stop at a bound on two columns while the first is equal, and
  -- would walk a stream with fewer than that below the bound to its end.
  where (h.rank, h.turn) <= (p_rank, p_turn);
end $$;

-- How many to take of each source, so that the p_n best are taken and no total is asked for more than its room: slots of a
-- total go to the first by (rank, turn), whatever type, set of totals or worker they belong to. The last p_rivals sources
-- are others': what they would get is left for them, and told too. p_gates, p_rooms: the totals, ascending, and their slots.
create function sluice.pick(p_n int, p_sources sluice.source[], p_rivals int, p_gates int[], p_rooms int[]) returns int[] language plpgsql as $$
declare
  v_m int := cardinality(p_sources); v_own int := v_m - p_rivals;
  -- First look at 2n/m of each source; only if one is used up to its end look at n of each.
  v_depth int := least(p_n, (2 * p_n + v_m - 1) / v_m);
  v_rank smallint := 32767; v_turn bigint := 9223372036854775807;
  v_wants int[]; v_totals int[]; v_end record; v_several boolean := false;
begin
  -- For each source its only total, or -1 if it has several.
  for i in 1..v_m loop
    v_totals[i] := case when p_sources[i].gate < 0 or p_sources[i].gate > 0 and p_sources[i].stream_gate > 0 then -1
      else p_sources[i].gate + p_sources[i].stream_gate end;
    v_several := v_several or v_totals[i] < 0;
  end loop;
  loop
    if v_several then
      select * into v_end from sluice.pick_one_by_one(p_n, p_sources, v_own, v_depth, v_rank, v_turn, p_gates, p_rooms);
    else
      select * into v_end from sluice.pick_at_once(p_n, p_sources, v_own, v_depth, v_rank, v_turn, v_totals, p_gates, p_rooms);
    end if;
    v_wants := v_end.wants;
    exit when v_depth >= p_n or not exists (select from unnest(v_wants, p_sources) u(k, stream, gate, stream_gate, rank, turn, id, room, stream_room)
      where k >= v_depth and v_depth < least(room, stream_room));
    v_depth := p_n;
    if v_end.taken >= p_n then v_rank := v_end.rank; v_turn := v_end.turn; end if;
  end loop;
  return v_wants;
end $$;

-- Where no source has more than one total, a place in the total's line is all that counts.
create function sluice.pick_at_once(p_n int, p_sources sluice.source[], p_own int, p_depth int, p_rank smallint, p_turn bigint, p_totals int[], p_gates int[], p_rooms int[],
  out wants int[], out taken int, out rank smallint, out turn bigint)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
begin
  with numbered as (
    select c.i, c.rank, c.turn, t.total, case when t.total = 0 then 0 else row_number() over (partition by t.total order by c.rank, c.turn) end as place
    from sluice.candidates(p_sources, p_depth, p_rank, p_turn) c cross join lateral (select p_totals[c.i] as total) t
  ), fits as (
    -- A limit that was removed has no counter, and limits nothing.
    select n.* from numbered n where n.place <= coalesce(p_rooms[array_position(p_gates, n.total)], 2147483647)
  ), best as materialized (
    select f.i, f.rank, f.turn from fits f where f.i <= p_own order by f.rank, f.turn limit p_n
  ), chosen as (
    select b.i from best b union all select f.i from fits f where f.i > p_own
  ), last as (
    select b.rank, b.turn from best b order by b.rank desc, b.turn desc limit 1
  )
  select array_agg(coalesce(k.n, 0) order by s.i), (select count(*) from best), (select l.rank from last l), (select l.turn from last l)
  into wants, taken, rank, turn
  from generate_subscripts(p_sources, 1) s(i) left join (select c.i, count(*)::int as n from chosen c group by c.i) k on k.i = s.i;
end $$;

-- Where some need slots of several totals: in order, each only if all of its totals have one left.
create function sluice.pick_one_by_one(p_n int, p_sources sluice.source[], p_own int, p_depth int, p_rank smallint, p_turn bigint, p_gates int[], p_rooms int[],
  out wants int[], out taken int, out rank smallint, out turn bigint) language plpgsql as $$
declare v_left int[] := p_rooms; v_at int[]; v_ends int[]; v_fits boolean; c record;
begin
  wants := array_fill(0, array[cardinality(p_sources)]); taken := 0;
  -- Where each source's totals stand in p_gates: one after the other, source i's from v_ends[i] + 1 to v_ends[i + 1].
  v_at := '{}'; v_ends := '{0}';
  for i in 1..cardinality(p_sources) loop
    v_at := v_at || array(select array_position(p_gates, g) from unnest(sluice.gates_of(p_sources[i].gate) || p_sources[i].stream_gate) g where g = any (p_gates));
    v_ends := v_ends || cardinality(v_at);
  end loop;
  for c in select * from sluice.candidates(p_sources, p_depth, p_rank, p_turn) x order by x.rank, x.turn loop
    v_fits := true;
    -- guard: a total counts for all kinds -> test/postgres/turns.test.ts: "a slot of a shared total goes to the first, whatever else the task needs: %s"
    for j in v_ends[c.i] + 1..v_ends[c.i + 1] loop v_fits := v_fits and v_left[v_at[j]] > 0; end loop;
    continue when not v_fits;
    for j in v_ends[c.i] + 1..v_ends[c.i + 1] loop v_left[v_at[j]] := v_left[v_at[j]] - 1; end loop;
    wants[c.i] := wants[c.i] + 1;
    continue when c.i > p_own;
    taken := taken + 1; rank := c.rank; turn := c.turn;
    exit when taken >= p_n;
  end loop;
end $$;

-- Locks the counters that must change, absorbs their credits, and says how many slots each gate may
-- use now, and until when it was full: of those not locked only with p_meters. Counters are taken
-- ascending and skipped when busy; only with nothing in hand, and so holding no counter, do we wait
-- for one. Nobody who holds a counter waits for anything. p_heads: the first of each source, for which a slot may be kept.
create function sluice.lock_gates(p_gates int[], p_wants int[], p_own int[], p_heads bigint[], p_may_wait boolean, p_meters boolean,
  out slots int[], out locked boolean[], out absorbed int[], out full_until timestamptz[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_change int[]; v_locked int[]; v_room int[]; v_full timestamptz[]; v_kept int[]; v_credit int[]; v_credit_n int[]; v_first timestamptz[]; v_last timestamptz[];
begin
  v_change := array(select g from unnest(p_gates, p_wants, p_own) u(g, want, own) where want <> own
    -- guard: a slot kept for a task is found by the step that freed it -> test/postgres/kept.test.ts: "a step gives the slot it has freed to the task it is kept for"
    or exists (select from sluice.gate k where k.id = g and k.kept_for = any (p_heads)) order by g);
  if v_change <> '{}' then
    select array_agg(x.id), array_agg(x.room), array_agg(x.full_at), array_agg(x.kept) into v_locked, v_room, v_full, v_kept
    from unnest(v_change) c(gate) cross join lateral (
      select t.id, t.cap - t.used as room, t.full_at, case when t.kept_for <> all (p_heads) then 1 else 0 end as kept
      from sluice.gate t where t.id = c.gate for update skip locked) x;
    if v_locked is null and p_may_wait then
      select array[x.id], array[x.room], array[x.full_at], array[x.kept] into v_locked, v_room, v_full, v_kept
      from (select id, cap - used as room, full_at, case when kept_for <> all (p_heads) then 1 else 0 end as kept
        from sluice.gate where id = v_change[1] for update) x;
    end if;
    if v_locked is not null and exists (select from sluice.credit) then
      with gone as (delete from sluice.credit where gate = any (v_locked) returning gate, n, at),
        sums as (select gate, sum(n)::int as n, min(at) as first, max(at) as last from gone group by gate)
      select array_agg(gate), array_agg(n), array_agg(first), array_agg(last) into v_credit, v_credit_n, v_first, v_last from sums;
    end if;
  end if;
  -- guard: cap check on re-use -> test/postgres/attacks.test.ts: "attack 7: slots re-used inside a step respect a lowered limit"
  select array_agg(case when l.id is not null then greatest(0, l.room + coalesce(c.n, 0) + u.own - l.kept) else least(u.own, u.want, greatest(0, sluice.gate_room(u.gate, p_gates, p_own))) end order by u.i),
    array_agg(l.id is not null order by u.i), array_agg(coalesce(c.n, 0) order by u.i),
    -- As in full_until.
    array_agg(case when l.id is null then case when p_meters then sluice.full_until(u.gate) end when l.room > 0 then l.full_at
      when l.room + coalesce(c.n, 0) <= 0 then 'infinity' when l.room = 0 then c.first else c.last end order by u.i)
  into slots, locked, absorbed, full_until
  from unnest(p_gates, p_wants, p_own) with ordinality u(gate, want, own, i)
  left join unnest(v_locked, v_room, v_full, v_kept) l(id, room, full_at, kept) on l.id = u.gate
  left join unnest(v_credit, v_credit_n, v_first, v_last) c(gate, n, first, last) on c.gate = u.gate;
end $$;

-- The same for a step that needs the counter of one total and nothing else, which is most of them: room is what the total
-- can give, with its credits, and below 0 while more run than a lowered number allows. Null if somebody else has the counter or a slot is kept: then lock_gates decides.
-- The lock is the only one of a counter that such a step takes, and it waits for nothing after it.
create function sluice.lock_total(p_gate int, out room int, out absorbed int, out full_until timestamptz) language plpgsql as $$
declare v_first timestamptz; v_last timestamptz;
begin
  -- guard: the counter of one total is locked -> test/postgres/attacks.test.ts: "attack 7: slots re-used inside a step respect a lowered limit"
  select g.cap - g.used, g.full_at into room, full_until from sluice.gate g
  where g.id = p_gate and g.kept_for is null for update skip locked;
  if not found then return; end if;
  with gone as (delete from sluice.credit c where c.gate = p_gate returning c.n, c.at)
  select coalesce(sum(n), 0), min(at), max(at) into absorbed, v_first, v_last from gone;
  -- As in full_until.
  if room + absorbed <= 0 then full_until := 'infinity';
  elsif room = 0 then full_until := v_first;
  elsif room < 0 then full_until := v_last; end if;
  room := room + absorbed;
end $$;

-- How many slots of each of these gates the wanted tasks of all sources take.
create function sluice.wants_of(p_gates int[], p_sources sluice.source[], p_wants int[]) returns int[] language plpgsql stable as $$
begin
  return array(select coalesce(w.n, 0) from unnest(p_gates) with ordinality x(gate, i) left join (
    select y.gate, sum(u.k)::int as n from unnest(p_sources, p_wants) u(stream, gate, stream_gate, rank, turn, id, room, stream_room, k)
    cross join lateral unnest(sluice.gates_of(u.gate) || u.stream_gate) y(gate) where u.k > 0 group by y.gate) w on w.gate = x.gate order by x.i);
end $$;

-- Slots of a task in hand; those of a set of totals are at most 8.
create function sluice.slots_held(p_lanes bigint[], p_gate int, p_stream_gate int) returns smallint language sql immutable as
$$ select (coalesce(cardinality(p_lanes), 0) + case when p_gate > 0 then 1 when p_gate < 0 then 8 else 0 end + case when p_stream_gate <> 0 then 1 else 0 end)::smallint $$;

create function sluice.ms_between(p_from timestamptz, p_to timestamptz) returns bigint language sql immutable as
$$ select greatest(0, date_part('epoch', p_to - p_from) * 1000)::bigint $$;

-- How many milliseconds ago a gate was full: -1 if it was until now; the largest number that is exact in JavaScript if it never was.
create function sluice.full_ms(p_until timestamptz, p_now timestamptz) returns bigint language sql immutable as
$$ select case p_until when 'infinity' then -1 when '-infinity' then 9007199254740991 else sluice.ms_between(p_until, p_now) end $$;

-- What a task has passed, for metrics: see step. p_gates: ',' and each of its totals, with how long ago it was full. Numbers as
-- text, because an array costs twice as much to make and to send.
create function sluice.passed(p_attempt smallint, p_due timestamptz, p_now timestamptz, p_gates text, p_lanes bigint[], p_late smallint, p_lane_limits int[]) returns text language sql stable as
$$ select case when p_attempt = 0 then sluice.ms_between(p_due, p_now) else -1 end::text
  || case when p_lanes is null then p_gates else coalesce(p_gates, '') || ',0,' || coalesce(p_late, 0)::text || ',' || array_to_string(p_lane_limits, ',') end $$;

-- p_claim: the token of what this call claims, random and chosen by the caller, who therefore knows
-- it even when the reply is lost. p_from: the stream to begin with. p_tells: note that the worker
-- sleeps, if it got fewer than it asked for, or that it is awake.
-- p_spots: where to look, for a worker whose looks take long; empty: everywhere, but tell if it took long.
-- A first row with a null id tells how many settles were refused, in attempt, if any was. Another, for who
-- gave p_spots, if the look took long or began at spots, tells in stream how many milliseconds it took, and in input where the
-- heads were. One with stream -1 tells that tasks of a run are to be placed, by code that knows them or because they are many.
-- holds: how many slots a task holds, and so how many others its end may let through, at most.
-- trace: who enqueued it, or null. passed: of the first task of the first source, unless it was tried before, for how many
-- milliseconds it had been due: of one per claim is enough to know how long tasks wait. With p_meters so of every task that has a limit,
-- -1 if it was tried before, and then what it passed: each of its totals, by the id of its limit, and how many milliseconds ago
-- that was full (-1: until now; 9007199254740991: never); and if it has lanes 0, its late, and the limit of each: numbers, split by commas.
create function sluice.step(p_worker bigint, p_claim bigint, p_streams int[], p_n int,
  p_ids bigint[] default null, p_claims bigint[] default null, p_results text default null, p_keep boolean default true,
  p_from int default 1, p_tells boolean default false, p_spots sluice.spot[] default null, p_meters boolean default false)
returns table (id bigint, stream int, attempt smallint, input json, holds smallint, trace text, passed text, nonce bigint)
-- A run row in the hand of a user's transaction that does not end must not hold up the barrier: the
-- step fails, its outcomes are sent again.
language plpgsql set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare
  v record; v_note record; g record; s sluice.source; v_sources sluice.source[]; v_others sluice.source[];
  v_settled bigint[]; v_lanes bigint[]; v_lanes_n int[]; v_own_gates int[]; v_own_n int[]; v_joined bigint[]; v_joined_limits int[]; v_take int;
  v_gates int[]; v_rooms int[]; v_wants int[]; v_gate_wants int[]; v_gate_own int[]; v_all sluice.source[]; v_heads bigint[];
  v_passed_lanes int[]; v_ring int[]; v_kept boolean; v_many boolean; v_total int; v_own int;
  v_refused int; v_head bigint; v_claimed int := 0; v_plain int; v_alive boolean; v_lowered boolean; v_dirty boolean; v_noted boolean; v_flow boolean; f record; v_look timestamptz; v_look_ms int; v_passed text; v_full bigint[];
begin
  perform sluice.barrier_shared();
  -- All that a step asks before it begins: a statement costs more to start than to run. But a scan of a B-tree takes
  -- 27 kB of memory, and past about 100 kB the allocator gives memory back to the system and gets it anew with every
  -- statement, which costs more than a statement. So there are two, and each asks only what this step needs to know.
  select exists (select from sluice.worker w where w.id = p_worker and w.expires_at > sluice.clock()),
    p_n > 0 and exists (select from sluice.dirty),
    p_n > 0 and exists (select from sluice.lowered),
    exists (select from sluice.workflow_active)
  into v_alive, v_dirty, v_lowered, v_flow;
  if not v_alive then perform sluice.require_lease(p_worker); end if;
  if p_ids is not null then
    v_noted := exists (select from sluice.awaited) or exists (select from sluice.stop) or exists (select from sluice.crash);
    select * into v from sluice.settle_succeeded(p_ids, p_claims, p_results, p_keep, v_noted or v_flow and not p_keep);
    v_lanes := v.lanes; v_own_gates := v.gates; v_own_n := v.gates_n; v_settled := v.settled;
    v_refused := cardinality(p_ids) - coalesce(cardinality(v.settled), 0);
    if v_own_gates is not null then
      select exists (select from sluice.gate x where x.kept_for is not null), exists (select from sluice.stream where many)
      into v_kept, v_many;
    end if;
    if v_refused > 0 then return query select null::bigint, null::int, least(v_refused, 32767)::smallint, null::json, null::smallint, null::text, null::text, null::bigint; end if;
  end if;

  if v_flow then
    -- Before the lanes, and before the claim: this step may claim what comes next in the runs of what it settled.
    select * into f from sluice.workflow_step_end(v_settled, p_streams, p_n);
    v_dirty := v_dirty or f.joined;
    if f.unplaced then return query select null::bigint, -1, null::smallint, null::json, null::smallint, null::text, null::text, null::bigint; end if;
  end if;

  -- guard: one pass -> test/postgres/attacks.test.ts: "attack 4: a step admits in one ascending pass"
  if p_n > 0 and v_dirty then
    select * into v_note from sluice.take_dirty(500);
    v_joined := v_note.joined; v_joined_limits := v_note.joined_limits;
    if v_note.freed is not null then
      v_lanes_n := array_fill(1, array[coalesce(cardinality(v_lanes), 0)]) || v_note.freed_n;
      v_lanes := v_lanes || v_note.freed;
    end if;
  end if;
  if v_lanes is not null or v_joined is not null then v_passed_lanes := sluice.admit(v_lanes, v_lanes_n, v_joined, v_joined_limits); end if;

  if p_n > 0 then
    v_look := sluice.clock();
    if p_spots <> '{}' then
      v_sources := sluice.sources_from(p_spots, p_streams, v_own_gates, v_own_n);
    else
      v_sources := sluice.sources(
        case when p_from > 1 then p_streams[p_from:] || p_streams[:p_from - 1] else p_streams end, v_own_gates, v_own_n, p_claim);
    end if;
    v_look_ms := extract(epoch from sluice.clock() - v_look) * 1000;
    if p_spots <> '{}' or p_spots = '{}' and v_look_ms >= 3 then
      return query select null::bigint, v_look_ms, null::smallint,
        (select json_agg(json_build_array(x.stream, x.gate, x.rank, x.turn::text)) from unnest(v_sources) x), null::smallint, null::text, null::text, null::bigint;
    end if;
  end if;

  v_head := v_sources[1].id;
  -- The short ways: one source, and no counter to change. Either it has no gate, so that limits
  -- elsewhere cost it nothing, or the slots that this step has freed are exactly those it may use
  -- again, and the counters were only read. (With one total, one of the two gates is 0, so their sum is the other.)
  if cardinality(v_sources) = 1 then
    s := v_sources[1];
    if v_own_gates is null then
      v_take := case when s.gate = 0 and s.stream_gate = 0 then p_n end;
    elsif cardinality(v_own_gates) = 1 and least(s.gate, s.stream_gate) = 0 and v_own_gates[1] = s.gate + s.stream_gate
        and least(p_n, s.room, s.stream_room) = v_own_n[1] and not v_kept and (sluice.rivals(v_own_gates, p_streams)).streams is null then
      v_take := v_own_n[1];
    elsif cardinality(v_own_gates) > 1 and v_own_n[1] = all (v_own_n) and least(p_n, s.room, s.stream_room) = v_own_n[1] and not v_kept
        -- guard: slots are re-used for their own totals only -> test/postgres/turns.test.ts: "slots of several totals are re-used only if all of them were freed"
        and v_own_gates = array(select x from unnest(sluice.gates_of(s.gate) || s.stream_gate) x where x > 0 order by x)
        and (sluice.rivals(v_own_gates, p_streams)).streams is null then
      v_take := v_own_n[1];
    end if;
  end if;

  -- The middle way: one source with one total, whose counter must change, and nobody else to ask. It takes a third of
  -- the statements that several totals need.
  if v_take is null and cardinality(v_sources) = 1 and s.gate >= 0 and least(s.gate, s.stream_gate) = 0
      and (v_own_gates is null or v_own_gates = array[s.gate + s.stream_gate])
      and (sluice.full_until(s.gate + s.stream_gate) < v_look - interval '1 second'
        or (sluice.rivals(array[s.gate + s.stream_gate], p_streams)).streams is null) then
    v_total := s.gate + s.stream_gate;
    select * into g from sluice.lock_total(v_total);
    if g.room is not null then
      v_own := coalesce(v_own_n[1], 0);
      -- guard: one total gives what it has -> test/postgres/limits.test.ts: "under a load of settles it is moved 10 -> 2 -> 10 -> 0 -> 5 and never exceeded"
      v_take := greatest(0, least(p_n, g.room + v_own));
    end if;
  end if;

  if v_sources is null then
    if v_own_gates is not null then perform sluice.give_back(v_own_gates, v_own_n); end if;
    -- Nobody asked for more here, or found use for it: somebody else may.
    if v_own_gates is not null and exists (select from sluice.worker where asleep) then
      if p_n <= 0 then perform sluice.ring(p_streams, (select sum(x) from unnest(v_own_n) x)::int); end if;
      v_ring := (sluice.rivals(v_own_gates, p_streams)).streams;
    end if;

  elsif v_take is not null then
    -- Without those that this step has freed it may have had none, which is told by the look already.
    if p_meters and v_total is not null then
      v_passed := ',' || v_total || ',' || sluice.full_ms(g.full_until, v_look);
    elsif p_meters and v_own_gates is not null then
      v_passed := (select string_agg(',' || x || ',' || case when sluice.gate_room(x, v_own_gates, v_own_n) <= v_take then -1
        else sluice.full_ms(sluice.full_until(x), v_look) end, '') from unnest(v_own_gates) x);
    end if;
    if s.gate = 0 then
      return query
      with taken as (
        delete from sluice.ready x where x.ctid = any (array(
          select y.ctid from sluice.ready y where y.stream = s.stream and (y.rank, y.turn) >= (s.rank, s.turn)
            and (not v_lowered or sluice.over_lane(y.lanes) is null) order by y.rank, y.turn limit v_take for update skip locked))
        returning x.id, x.stream, x.attempt, x.lanes, x.late
      ), running as (
        insert into sluice.run (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
        select id, p_claim, p_worker, attempt + 1, sluice.clock(), 0, s.stream_gate, lanes from taken
      )
      select c.id, c.stream, (c.attempt + 1)::smallint, t.input, sluice.slots_held(c.lanes, 0, s.stream_gate), t.trace,
        case when v_passed is not null or p_meters and c.lanes is not null and c.lanes[cardinality(c.lanes)] >> 60 = 3 then sluice.passed(c.attempt, coalesce(t.due_at, t.created_at), v_look, v_passed, c.lanes, c.late, t.lane_limits)
          when c.id = v_head and c.attempt = 0 then sluice.ms_between(coalesce(t.due_at, t.created_at), v_look)::text end, t.nonce from taken c
      cross join lateral (select k.input, k.nonce, k.trace, k.due_at, k.created_at, k.lane_limits from sluice.task k where k.id = c.id limit 1) t;
    else
      return query
      with taken as (
        delete from sluice.gated x where x.ctid = any (array(
          select y.ctid from sluice.gated y where y.stream = s.stream and y.gate = s.gate and (y.rank, y.turn) >= (s.rank, s.turn)
            and (not v_lowered or sluice.over_lane(y.lanes) is null) order by y.rank, y.turn limit v_take for update skip locked))
        returning x.id, x.stream, x.attempt, x.lanes, x.late
      ), running as (
        insert into sluice.run (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
        select id, p_claim, p_worker, attempt + 1, sluice.clock(), s.gate, s.stream_gate, lanes from taken
      )
      select c.id, c.stream, (c.attempt + 1)::smallint, t.input, sluice.slots_held(c.lanes, s.gate, s.stream_gate), t.trace,
        case when v_passed is not null or p_meters and c.lanes is not null and c.lanes[cardinality(c.lanes)] >> 60 = 3 then sluice.passed(c.attempt, coalesce(t.due_at, t.created_at), v_look, v_passed, c.lanes, c.late, t.lane_limits)
          when c.id = v_head and c.attempt = 0 then sluice.ms_between(coalesce(t.due_at, t.created_at), v_look)::text end, t.nonce from taken c
      cross join lateral (select k.input, k.nonce, k.trace, k.due_at, k.created_at, k.lane_limits from sluice.task k where k.id = c.id limit 1) t;
    end if;
    get diagnostics v_claimed = row_count;
    if v_total is not null then
      if v_claimed <> v_own + g.absorbed then
        update sluice.gate t set used = t.used + v_claimed - v_own - g.absorbed, full_at = least(g.full_until, sluice.clock())
        where t.id = v_total;
      end if;
      -- guard: slots of one total that a step gives back are noted -> test/postgres/kinds.test.ts: "slots of one total that a step gives back start tasks of types with many groups"
      if v_claimed < v_own and v_many then perform sluice.note_returned(array[v_total]); end if;
    elsif v_claimed < v_own_n[1] then
      perform sluice.give_back(v_own_gates, array_fill(v_own_n[1] - v_claimed, array[cardinality(v_own_gates)]));
    end if;

  else
    -- A limit that was removed has no counter: it is not among these, and limits nothing.
    v_gates := array(select t.id from (
        select distinct y.gate from unnest(v_sources) x cross join lateral unnest(sluice.gates_of(x.gate) || x.stream_gate || v_own_gates) y(gate)) w
      cross join lateral (select k.id from sluice.gate k where k.id = w.gate limit 1) t order by t.id);
    -- Where looks take long, others are looked at only as often as everything is.
    if v_gates <> '{}' and coalesce(p_spots, '{}') = '{}' then
      v_others := sluice.rival_sources(v_gates, p_streams, v_own_gates, v_own_n, p_claim);
    end if;
    v_all := v_sources || v_others;
    v_heads := array(select x.id from unnest(v_sources) x);
    if cardinality(v_all) = 1 then
      v_wants := array[least(p_n, v_all[1].room, v_all[1].stream_room)];
    else
      v_rooms := array(select sluice.gate_room(k.id, v_own_gates, v_own_n, case when k.kept_for = any (v_heads) then k.kept_for end)
        from unnest(v_gates) x(gate) cross join lateral (select id, kept_for from sluice.gate where id = x.gate limit 1) k order by k.id);
      v_wants := sluice.pick(p_n, v_all, coalesce(cardinality(v_others), 0), v_gates, v_rooms);
    end if;
    v_gate_wants := sluice.wants_of(v_gates, v_sources, v_wants[:cardinality(v_sources)]);
    v_gate_own := array(select coalesce(f.n, 0) from unnest(v_gates) with ordinality x(gate, i) left join unnest(v_own_gates, v_own_n) f(gate, n) on f.gate = x.gate order by x.i);
    v_plain := (select coalesce(sum(x.k), 0) from unnest(v_sources, v_wants[:cardinality(v_sources)]) x(stream, gate, stream_gate, rank, turn, id, room, stream_room, k) where x.gate = 0 and x.stream_gate = 0);
    select * into g from sluice.lock_gates(v_gates, v_gate_wants, v_gate_own, v_heads, v_plain = 0 and v_own_gates is null, p_meters);
    -- Fewer than we thought, because others were quicker: who is first is decided again by what there is.
    if exists (select from unnest(g.slots, v_gate_wants) x(slots, want) where x.slots < x.want) then
      v_wants := sluice.pick(p_n, v_all, coalesce(cardinality(v_others), 0), v_gates, g.slots);
    end if;
    if v_others is not null then
      v_ring := v_ring || array(select x.stream from unnest(v_all, v_wants) with ordinality x(stream, gate, stream_gate, rank, turn, id, room, stream_room, k, i)
        where x.i > cardinality(v_sources) and x.k > 0);
    end if;
    if p_meters and v_gates <> '{}' then
      v_look := sluice.clock();
      v_full := array(select sluice.full_ms(x.at, v_look) from unnest(g.full_until) with ordinality x(at, i) order by x.i);
    end if;

    return query
    with source as (
      select u.*, case when v_full is not null then (
          select string_agg(',' || y.gate || ',' || y.full_ms, '') from unnest(v_gates, v_full) y(gate, full_ms)
          where y.gate = any (sluice.gates_of(u.gate) || u.stream_gate)) end as passed
      from unnest(v_sources, v_wants[:cardinality(v_sources)]) u(stream, gate, stream_gate, rank, turn, id, room, stream_room, k) where k > 0
    ), from_ready as (
      delete from sluice.ready x where x.ctid = any (array(
        select y.tid from source w cross join lateral (
          select z.ctid as tid from sluice.ready z where z.stream = w.stream and (z.rank, z.turn) >= (w.rank, w.turn)
            and (not v_lowered or sluice.over_lane(z.lanes) is null) order by z.rank, z.turn limit w.k for update skip locked) y
        where w.gate = 0))
      returning x.id, x.stream, x.attempt, 0 as gate, x.lanes, x.late
    ), from_gated as (
      delete from sluice.gated x where x.ctid = any (array(
        select y.tid from source w cross join lateral (
          select z.ctid as tid from sluice.gated z where z.stream = w.stream and z.gate = w.gate and (z.rank, z.turn) >= (w.rank, w.turn)
            and (not v_lowered or sluice.over_lane(z.lanes) is null) order by z.rank, z.turn limit w.k for update skip locked) y
        where w.gate <> 0))
      returning x.id, x.stream, x.attempt, x.gate, x.lanes, x.late
    ), taken as materialized (
      select c.*, w.stream_gate, w.passed from (select * from from_ready union all select * from from_gated) c join source w on w.stream = c.stream and w.gate = c.gate
    ), running as (
      insert into sluice.run (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
      select id, p_claim, p_worker, attempt + 1, sluice.clock(), gate, stream_gate, lanes from taken
    ), used as (
      select x.gate, sum(t.n)::int as n from (select gate, stream_gate, count(*) as n from taken group by gate, stream_gate) t
      cross join lateral unnest(sluice.gates_of(t.gate) || t.stream_gate) x(gate) group by x.gate
    ), change as materialized (
      select y.gate, y.locked, y.absorbed, coalesce(u.n, 0) - y.own - y.absorbed as n, y.full_until
      from unnest(v_gates, g.locked, v_gate_own, g.absorbed, g.full_until) y(gate, locked, own, absorbed, full_until) left join used u on u.gate = y.gate
    ), counted as (
      update sluice.gate t set used = t.used + c.n, full_at = least(c.full_until, sluice.clock()),
        kept_for = case when t.kept_for = any (array(select id from taken)) then null else t.kept_for end from (
        select k.tid, change.n, change.full_until
        from change cross join lateral (select ctid as tid, kept_for from sluice.gate where id = change.gate limit 1) k
        where change.locked and (change.n <> 0 or k.kept_for = any (array(select id from taken)))) c
      where t.ctid = c.tid
    ), credited as (
      insert into sluice.credit (gate, n) select gate, -n from change where not locked and n < 0
    ), returned as (
      -- guard: slots a step gives back are noted -> test/postgres/kinds.test.ts: "slots that a step gives back beside its claim start the next tasks of full groups"
      insert into sluice.returned (stream, total) select gs.stream, gs.gate from change c
      join sluice.gate_stream gs on gs.gate = c.gate join sluice.stream st on st.id = gs.stream and st.many
      where v_many and c.n + c.absorbed < 0
    )
    select c.id, c.stream, (c.attempt + 1)::smallint, t.input, sluice.slots_held(c.lanes, c.gate, c.stream_gate), t.trace,
        case when c.passed is not null or p_meters and c.lanes is not null and c.lanes[cardinality(c.lanes)] >> 60 = 3 then sluice.passed(c.attempt, coalesce(t.due_at, t.created_at), v_look, c.passed, c.lanes, c.late, t.lane_limits)
          when c.id = v_head and c.attempt = 0 then sluice.ms_between(coalesce(t.due_at, t.created_at), v_look)::text end, t.nonce from taken c
    cross join lateral (select k.input, k.nonce, k.trace, k.due_at, k.created_at, k.lane_limits from sluice.task k where k.id = c.id limit 1) t;
    get diagnostics v_claimed = row_count;
  end if;
  -- Tasks that this step let through, or left a slot for, and that others serve. With nothing to claim, also our own.
  v_ring := v_ring || v_passed_lanes;
  if v_ring <> '{}' then
    perform sluice.ring_streams(array(select x from unnest(v_ring) x where p_n <= 0 or x <> all (p_streams)));
  end if;
  if p_tells then
    update sluice.worker w set asleep = v_claimed < p_n where w.id = p_worker and w.asleep <> (v_claimed < p_n);
  end if;
  -- It has all that it asked for, and there may be more: the next sleepers look. A claim that is larger than a batch is one
  -- of a worker with a backlog before it, which tells nothing but must not keep the backlog to itself.
  if v_claimed = p_n and (p_tells or p_n > 50) and exists (select from sluice.worker where asleep) then
    perform sluice.ring(p_streams, p_n);
  end if;
end $$;
