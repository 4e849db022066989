-- Step: settle these, admit once, claim n more. One round trip, one transaction.
--
-- A claim takes the heads of the sources its worker serves, merged by (rank, id). A source is
-- ready(stream), or gated(stream, gate) for each gate with room; the stream's own limit applies to
-- both. At most 16 sources per claim; the caller turns p_from so that every stream gets its turn.

-- Slots a gate could give us: an unlocked read, a hint. The truth is read under the counter's lock.
-- (plpgsql, like all that a step calls: its plan is kept, a SQL function that cannot be inlined is
-- planned again by every statement.)
create function sluice.gate_room(p_gate int, p_own_gates int[], p_own_n int[]) returns int language plpgsql stable as $$
begin
  if p_gate < 0 then return (select coalesce(min(sluice.gate_room(x, p_own_gates, p_own_n)), 2147483647) from unnest(sluice.gates_of(p_gate)) x); end if;
  return coalesce((
    select least(2147483647, g.cap::bigint - g.used + coalesce((select sum(c.n) from sluice.credit c where c.gate = p_gate), 0)
      + coalesce((select sum(o.n) from unnest(p_own_gates, p_own_n) o(gate, n) where o.gate = p_gate), 0))::int
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
create type sluice.source as (stream int, gate int, stream_gate int, rank smallint, id bigint, room int, stream_room int);

-- The sources that have something to take, at most 16. own_*: slots that this step has just freed and may
-- use again; their gates are looked at first. Of a stream's other gates at most 128 are looked at, from
-- one that the random token decides: with thousands of groups, most of them full, a claim costs no more.
create function sluice.sources(p_streams int[], p_own_gates int[], p_own_n int[], p_token bigint) returns sluice.source[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_sole sluice.source; v_from int; v_own int[] := coalesce(p_own_gates, '{}');
  -- Where to begin with those, too: at most 8, so that others are not left out for ever.
  v_turn int := 1 + p_token % greatest(1, cardinality(p_own_gates));
begin
  -- The life of one limited type: everything that waits stands at the gate of which this step has just freed slots.
  if cardinality(p_streams) = 1 and cardinality(p_own_gates) = 1 then
    select st.id, p_own_gates[1], 0, h.rank, h.id, least(2147483647, g.cap::bigint - g.used + coalesce((select sum(c.n) from sluice.credit c where c.gate = g.id), 0) + p_own_n[1]), 2147483647
    into v_sole from sluice.stream st
    cross join lateral (select r.rank, r.id from sluice.gated r where r.stream = st.id and r.gate = p_own_gates[1] order by r.rank, r.id limit 1) h
    cross join lateral (select k.id, k.cap, k.used from sluice.gate k where k.id = p_own_gates[1] limit 1) g
    where st.id = p_streams[1] and not st.paused and st.gate = any (array[0, p_own_gates[1]])
      and not exists (select from sluice.ready r where r.stream = p_streams[1])
      and not exists (select from sluice.gated r where r.stream = p_streams[1] and r.gate < p_own_gates[1])
      and not exists (select from sluice.gated r where r.stream = p_streams[1] and r.gate > p_own_gates[1]);
    if found then return case when v_sole.room > 0 then array[v_sole] end; end if;
  end if;
  -- Where no task waits at a gate, the walk over gates is left out: it is most of what a look costs.
  if not exists (select from sluice.gated) then
    return (select array_agg(z) from (
      select u.stream, 0 as gate, s.gate as stream_gate, h.rank, h.id, 2147483647 as room, s.room as stream_room from unnest(p_streams) u(stream)
      cross join lateral (
        select st.gate, case when st.gate = 0 then 2147483647 else sluice.gate_room(st.gate, p_own_gates, p_own_n) end as room
        from sluice.stream st where st.id = u.stream and not st.paused limit 1) s
      cross join lateral (select r.rank, r.id from sluice.ready r where r.stream = u.stream order by r.rank, r.id limit 1) h
      where s.room > 0 limit 16) z);
  end if;
  v_from := sluice.turn_of(p_token);
  return (select array_agg(z) from (
    select u.stream, h.gate, case when h.gate = s.gate or h.gate < 0 and s.gate = any (sluice.gates_of(h.gate)) then 0 else s.gate end as stream_gate, h.rank, h.id, h.room, s.room as stream_room
    from unnest(p_streams) u(stream)
    cross join lateral (
      select st.gate, case when st.gate = 0 then 2147483647 else sluice.gate_room(st.gate, p_own_gates, p_own_n) end as room
      from sluice.stream st where st.id = u.stream and not st.paused limit 1) s
    cross join lateral (
      (select 0 as gate, r.rank, r.id, 2147483647 as room from sluice.ready r where r.stream = u.stream order by r.rank, r.id limit 1)
      union all
      (select o.gate, g.rank, g.id, v.room from unnest(v_own[v_turn:] || v_own[:v_turn - 1]) o(gate)
        cross join lateral (select r.rank, r.id from sluice.gated r where r.stream = u.stream and r.gate = o.gate order by r.rank, r.id limit 1) g
        cross join lateral (select sluice.gate_room(o.gate, p_own_gates, p_own_n) as room) v
        where v.room > 0 limit 8)
      union all
      (select g.gate, g.rank, g.id, v.room from (select * from (values (v_from, 2147483647), (-2147483648, v_from - 1)) t(low, high) where exists (select from sluice.gated x where x.stream = u.stream)) turn cross join lateral (
        with recursive heads as (
          (select r.gate, r.rank, r.id, 1 as n from sluice.gated r where r.stream = u.stream and r.gate >= turn.low and r.gate <= turn.high order by r.gate, r.rank, r.id limit 1)
          union all
          select x.gate, x.rank, x.id, h.n + 1 from heads h cross join lateral (
            select r.gate, r.rank, r.id from sluice.gated r where r.stream = u.stream and r.gate > h.gate and r.gate <= turn.high order by r.gate, r.rank, r.id limit 1) x
          where h.n < 64
        ) select * from heads) g
        cross join lateral (select case when g.gate = any (v_own) then 0 else sluice.gate_room(g.gate, p_own_gates, p_own_n) end as room) v
        where v.room > 0)
    ) h
    where s.room > 0
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
create type sluice.spot as (stream int, gate int, rank smallint, id bigint);

-- The same for a worker whose looks take long, because some old snapshot keeps the rows alive that were
-- claimed since: each source is looked at from where its head was. What has come to stand before that is
-- found by the next full look. Gates of which this step has freed slots are looked at first, known or not.
create function sluice.sources_from(p_spots sluice.spot[], p_streams int[], p_own_gates int[], p_own_n int[]) returns sluice.source[]
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  return (select array_agg(z) from (
    select u.stream, u.gate, case when u.gate = s.gate or u.gate < 0 and s.gate = any (sluice.gates_of(u.gate)) then 0 else s.gate end as stream_gate, h.rank, h.id, v.room, s.room as stream_room
    from (
      select s.stream, o.gate, (-32768)::smallint as rank, 0::bigint as id from unnest(p_own_gates[:8]) o(gate) cross join unnest(p_streams) s(stream)
      where not exists (select from unnest(p_spots) x where x.stream = s.stream and x.gate = o.gate)
      union all
      select * from unnest(p_spots)
    ) u
    cross join lateral (
      select st.gate, case when st.gate = 0 then 2147483647 else sluice.gate_room(st.gate, p_own_gates, p_own_n) end as room
      from sluice.stream st where st.id = u.stream and not st.paused limit 1) s
    cross join lateral (select case when u.gate = 0 then 2147483647 else sluice.gate_room(u.gate, p_own_gates, p_own_n) end as room) v
    cross join lateral (
      (select r.rank, r.id from sluice.ready r where u.gate = 0 and r.stream = u.stream and (r.rank, r.id) >= (u.rank, u.id) order by r.rank, r.id limit 1)
      union all
      (select r.rank, r.id from sluice.gated r where u.gate <> 0 and r.stream = u.stream and r.gate = u.gate and (r.rank, r.id) >= (u.rank, u.id) order by r.rank, r.id limit 1)
    ) h
    where s.room > 0 and v.room > 0
    limit 16) z);
end $$;

-- Streams of other live workers with room, that hold tasks of these gates: a slot may be worth more
-- there (attack 11). A stream that nobody serves, or only workers that claim no more, is not asked:
-- the slot would lie idle.
create function sluice.rivals(p_gates int[], p_streams int[]) returns int[] language plpgsql as $$
begin
  -- The common case, a limit of one type or of types that we all serve, is told by the index alone.
  if not exists (select from sluice.gate_stream gs where gs.gate = any (p_gates) and gs.stream <> all (p_streams)) then return null; end if;
  return (select array_agg(distinct gs.stream) from sluice.gate_stream gs
    where gs.gate = any (p_gates) and gs.stream <> all (p_streams)
      and exists (select from sluice.worker w where w.capacity_available > 0 and not w.draining and w.streams @> array[gs.stream] and w.expires_at > sluice.clock()));
end $$;

-- How many to take of each source, so that the p_n best are taken and no gate is asked for more than
-- its room. The last p_rivals sources are others': they count at the gates and take nothing.
create function sluice.pick(p_n int, p_sources sluice.source[], p_rivals int) returns int[] language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare
  v_m int := cardinality(p_sources); v_own int := v_m - p_rivals;
  -- First look at 2n/m of each source; only if one is used up to its end look at n of each.
  v_depth int := least(p_n, (2 * p_n + v_m - 1) / v_m);
  v_last_rank smallint := 32767; v_last_id bigint := 9223372036854775807;
  v_wants int[]; v_deeper boolean; v_total int; v_end_rank smallint; v_end_id bigint;
begin
  loop
    with candidate as (
      select s.i, s.gate, s.stream_gate, s.room, s.stream_room, h.rank, h.id
      from unnest(p_sources) with ordinality s(stream, gate, stream_gate, rank, id, room, stream_room, i)
      cross join lateral (
        (select r.rank, r.id from sluice.ready r where s.gate = 0 and r.stream = s.stream and (r.rank, r.id) >= (s.rank, s.id)
          order by r.rank, r.id limit least(v_depth, s.stream_room))
        union all
        (select r.rank, r.id from sluice.gated r where s.gate <> 0 and r.stream = s.stream and r.gate = s.gate and (r.rank, r.id) >= (s.rank, s.id)
          order by r.rank, r.id limit least(v_depth, s.room, s.stream_room))) h
      -- Not in the scans: an index scan does not stop at a bound on two columns while the first is equal, and
      -- would walk a stream with fewer than that below the bound to its end.
      where (h.rank, h.id) <= (v_last_rank, v_last_id)
    ), numbered as (
      select c.*, case when gate = 0 then 0 else row_number() over (partition by gate order by rank, id) end as at_gate,
        case when stream_gate = 0 then 0 else row_number() over (partition by stream_gate order by rank, id) end as at_stream_gate
      from candidate c
    ), best as materialized (
      select i, room, stream_room, rank, id from numbered where at_gate <= room and at_stream_gate <= stream_room and i <= v_own order by rank, id limit p_n
    ), per_source as (
      select i, count(*)::int as k, least(min(room), min(stream_room)) as room from best group by i
    ), last as (
      select rank, id from best order by rank desc, id desc limit 1
    )
    select array_agg(coalesce(p.k, 0) order by g.i), bool_or(p.k >= v_depth and v_depth < p.room), sum(p.k), max((select rank from last)), max((select id from last))
    into v_wants, v_deeper, v_total, v_end_rank, v_end_id
    from generate_series(1, v_own) g(i) left join per_source p on p.i = g.i;
    exit when v_depth >= p_n or not coalesce(v_deeper, false);
    v_depth := p_n;
    if v_total >= p_n then v_last_rank := v_end_rank; v_last_id := v_end_id; end if;
  end loop;
  return v_wants;
end $$;

-- Locks the counters that must change, absorbs their credits, and says how many slots each gate may
-- use now, and until when it was full: of those not locked only with p_meters. Counters are taken
-- ascending and skipped when busy; only with nothing in hand, and so holding no counter, do we wait
-- for one. Nobody who holds a counter waits for anything.
create function sluice.lock_gates(p_gates int[], p_wants int[], p_own int[], p_may_wait boolean, p_meters boolean,
  out slots int[], out locked boolean[], out absorbed int[], out full_until timestamptz[])
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_change int[]; v_locked int[]; v_room int[]; v_full timestamptz[]; v_credit int[]; v_credit_n int[]; v_first timestamptz[]; v_last timestamptz[];
begin
  v_change := array(select g from unnest(p_gates, p_wants, p_own) u(g, want, own) where want <> own order by g);
  if v_change <> '{}' then
    select array_agg(x.id), array_agg(x.room), array_agg(x.full_at) into v_locked, v_room, v_full
    from unnest(v_change) c(gate) cross join lateral (
      select t.id, t.cap - t.used as room, t.full_at from sluice.gate t where t.id = c.gate for update skip locked) x;
    if v_locked is null and p_may_wait then
      select array[x.id], array[x.room], array[x.full_at] into v_locked, v_room, v_full
      from (select id, cap - used as room, full_at from sluice.gate where id = v_change[1] for update) x;
    end if;
    if v_locked is not null and exists (select from sluice.credit) then
      with gone as (delete from sluice.credit where gate = any (v_locked) returning gate, n, at),
        sums as (select gate, sum(n)::int as n, min(at) as first, max(at) as last from gone group by gate)
      select array_agg(gate), array_agg(n), array_agg(first), array_agg(last) into v_credit, v_credit_n, v_first, v_last from sums;
    end if;
  end if;
  -- guard: cap check on re-use -> test/postgres/attacks.test.ts: "attack 7: slots re-used inside a step respect a lowered limit"
  select array_agg(case when l.id is not null then greatest(0, l.room + coalesce(c.n, 0) + u.own) else least(u.own, u.want, greatest(0, sluice.gate_room(u.gate, p_gates, p_own))) end order by u.i),
    array_agg(l.id is not null order by u.i), array_agg(coalesce(c.n, 0) order by u.i),
    -- As in full_until.
    array_agg(case when l.id is null then case when p_meters then sluice.full_until(u.gate) end when l.room > 0 then l.full_at
      when l.room + coalesce(c.n, 0) <= 0 then 'infinity' when l.room = 0 then c.first else c.last end order by u.i)
  into slots, locked, absorbed, full_until
  from unnest(p_gates, p_wants, p_own) with ordinality u(gate, want, own, i)
  left join unnest(v_locked, v_room, v_full) l(id, room, full_at) on l.id = u.gate
  left join unnest(v_credit, v_credit_n, v_first, v_last) c(gate, n, first, last) on c.gate = u.gate;
end $$;

-- Cuts what is wanted of each source to the slots of its gates, best source first.
create function sluice.allot(p_wants int[], p_sources sluice.source[], p_gates int[], p_slots int[]) returns int[] language plpgsql as $$
declare v_slots int[] := p_slots; v_out int[] := p_wants; v_at int[]; v_k int; v_i int;
begin
  for i in 1..cardinality(p_wants) loop
    v_at := array(select array_position(p_gates, g) from unnest(sluice.gates_of(p_sources[i].gate) || p_sources[i].stream_gate) g where g = any (p_gates));
    v_k := p_wants[i];
    foreach v_i in array v_at loop v_k := least(v_k, v_slots[v_i]); end loop;
    foreach v_i in array v_at loop v_slots[v_i] := v_slots[v_i] - v_k; end loop;
    v_out[i] := v_k;
  end loop;
  return v_out;
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
returns table (id bigint, stream int, attempt smallint, input json, holds smallint, trace text, passed text)
-- A run row in the hand of a user's transaction that does not end must not hold up the barrier: the
-- step fails, its outcomes are sent again.
language plpgsql set lock_timeout = '2s' set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
#variable_conflict use_column
declare
  v record; v_note record; g record; s sluice.source; v_sources sluice.source[]; v_others sluice.source[];
  v_settled bigint[]; v_lanes bigint[]; v_lanes_n int[]; v_own_gates int[]; v_own_n int[]; v_joined bigint[]; v_joined_limits int[]; v_take int;
  v_gates int[]; v_wants int[]; v_want_gates int[]; v_want_n int[]; v_gate_wants int[]; v_gate_own int[]; v_rivals int[];
  v_refused int; v_head bigint; v_claimed int := 0; v_plain int; v_alive boolean; v_lowered boolean; v_dirty boolean; v_noted boolean; v_flow boolean; f record; v_look timestamptz; v_look_ms int; v_passed text; v_full bigint[];
begin
  perform sluice.barrier_shared();
  -- All that a step asks before it begins, in one statement: each costs more to start than to run.
  select exists (select from sluice.worker w where w.id = p_worker and w.expires_at > sluice.clock()), exists (select from sluice.dirty), exists (select from sluice.lowered),
    exists (select from sluice.awaited) or exists (select from sluice.stop) or exists (select from sluice.crash),
    exists (select from sluice.workflow_run x where x.finished_at is null)
  into v_alive, v_dirty, v_lowered, v_noted, v_flow;
  if not v_alive then perform sluice.require_lease(p_worker); end if;
  if p_ids is not null then
    select * into v from sluice.settle_succeeded(p_ids, p_claims, p_results, p_keep, v_noted or v_flow and not p_keep);
    v_lanes := v.lanes; v_own_gates := v.gates; v_own_n := v.gates_n; v_settled := v.settled;
    v_refused := cardinality(p_ids) - coalesce(cardinality(v.settled), 0);
    if v_refused > 0 then return query select null::bigint, null::int, least(v_refused, 32767)::smallint, null::json, null::smallint, null::text, null::text; end if;
  end if;

  if v_flow then
    -- Before the lanes, and before the claim: this step may claim what comes next in the runs of what it settled.
    select * into f from sluice.workflow_step_end(v_settled, p_streams, p_n);
    v_dirty := v_dirty or f.joined;
    if f.unplaced then return query select null::bigint, -1, null::smallint, null::json, null::smallint, null::text, null::text; end if;
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
  if v_lanes is not null or v_joined is not null then perform sluice.admit(v_lanes, v_lanes_n, v_joined, v_joined_limits); end if;

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
        (select json_agg(json_build_array(x.stream, x.gate, x.rank, x.id::text)) from unnest(v_sources) x), null::smallint, null::text, null::text;
    end if;
  end if;

  v_head := v_sources[1].id;
  -- The short ways: one source, and no counter to change. Either it has no gate, so that limits
  -- elsewhere cost it nothing, or the slots that this step has freed are exactly those it may use
  -- again, and the counter was only read. (One of the two gates is 0, so their sum is the other.)
  if cardinality(v_sources) = 1 then
    s := v_sources[1];
    if v_own_gates is null then
      v_take := case when s.gate = 0 and s.stream_gate = 0 then p_n end;
    elsif cardinality(v_own_gates) = 1 and least(s.gate, s.stream_gate) = 0 and v_own_gates[1] = s.gate + s.stream_gate
        and least(p_n, s.room, s.stream_room) = v_own_n[1] and sluice.rivals(v_own_gates, p_streams) is null then
      v_take := v_own_n[1];
    end if;
  end if;

  if v_sources is null then
    if v_own_gates is not null then perform sluice.give_back(v_own_gates, v_own_n); end if;
    -- Nobody asked for more here, or found use for it: somebody else may.
    if (v_own_gates is not null or v_lanes is not null) and exists (select from sluice.worker where asleep) then
      perform sluice.ring(case when p_n <= 0 then p_streams else sluice.rivals(v_own_gates, p_streams) end,
        coalesce((select sum(x) from unnest(v_own_n) x), 0)::int + coalesce(cardinality(v_lanes), 0));
    end if;

  elsif v_take is not null then
    -- Without those that this step has freed it may have had none, which is told by the look already.
    if p_meters and v_own_gates is not null then
      v_passed := ',' || v_own_gates[1] || ',' || case when least(s.room, s.stream_room) <= v_own_n[1] then -1 else sluice.full_ms(sluice.full_until(v_own_gates[1]), v_look) end;
    end if;
    if s.gate = 0 then
      return query
      with taken as (
        delete from sluice.ready x where x.ctid = any (array(
          select y.ctid from sluice.ready y where y.stream = s.stream and (y.rank, y.id) >= (s.rank, s.id)
            and (not v_lowered or sluice.over_lane(y.lanes) is null) order by y.rank, y.id limit v_take for update skip locked))
        returning x.id, x.stream, x.attempt, x.lanes, x.late
      ), running as (
        insert into sluice.run (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
        select id, p_claim, p_worker, attempt + 1, sluice.clock(), 0, s.stream_gate, lanes from taken
      )
      select c.id, c.stream, (c.attempt + 1)::smallint, t.input, sluice.slots_held(c.lanes, 0, s.stream_gate), t.trace,
        case when v_passed is not null or p_meters and c.lanes is not null and (c.lanes[1] >> 60 = 2 or c.lanes[2] >> 60 = 2) then sluice.passed(c.attempt, coalesce(t.due_at, t.created_at), v_look, v_passed, c.lanes, c.late, t.lane_limits)
          when c.id = v_head and c.attempt = 0 then sluice.ms_between(coalesce(t.due_at, t.created_at), v_look)::text end from taken c
      cross join lateral (select k.input, k.trace, k.due_at, k.created_at, k.lane_limits from sluice.task k where k.id = c.id limit 1) t;
    else
      return query
      with taken as (
        delete from sluice.gated x where x.ctid = any (array(
          select y.ctid from sluice.gated y where y.stream = s.stream and y.gate = s.gate and (y.rank, y.id) >= (s.rank, s.id)
            and (not v_lowered or sluice.over_lane(y.lanes) is null) order by y.rank, y.id limit v_take for update skip locked))
        returning x.id, x.stream, x.attempt, x.lanes, x.late
      ), running as (
        insert into sluice.run (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
        select id, p_claim, p_worker, attempt + 1, sluice.clock(), s.gate, s.stream_gate, lanes from taken
      )
      select c.id, c.stream, (c.attempt + 1)::smallint, t.input, sluice.slots_held(c.lanes, s.gate, s.stream_gate), t.trace,
        case when v_passed is not null or p_meters and c.lanes is not null and (c.lanes[1] >> 60 = 2 or c.lanes[2] >> 60 = 2) then sluice.passed(c.attempt, coalesce(t.due_at, t.created_at), v_look, v_passed, c.lanes, c.late, t.lane_limits)
          when c.id = v_head and c.attempt = 0 then sluice.ms_between(coalesce(t.due_at, t.created_at), v_look)::text end from taken c
      cross join lateral (select k.input, k.trace, k.due_at, k.created_at, k.lane_limits from sluice.task k where k.id = c.id limit 1) t;
    end if;
    get diagnostics v_claimed = row_count;
    if v_claimed < v_own_n[1] then perform sluice.give_back(v_own_gates, array[v_own_n[1] - v_claimed]); end if;

  else
    -- A limit that was removed has no counter: it is not among these, and limits nothing.
    v_gates := array(select t.id from (
        select distinct y.gate from unnest(v_sources) x cross join lateral unnest(sluice.gates_of(x.gate) || x.stream_gate || v_own_gates) y(gate)) w
      cross join lateral (select k.id from sluice.gate k where k.id = w.gate limit 1) t order by t.id);
    -- A rival's head that some open transaction has in hand cannot be taken by him either: now and then
    -- (by the random token) nobody is left a slot, so that it cannot lie idle for long. And where looks take
    -- long, others are looked at only as often as everything is.
    if v_gates <> '{}' and p_claim % 16 <> 15 and coalesce(p_spots, '{}') = '{}' then
      v_rivals := sluice.rivals(v_gates, p_streams);
      if v_rivals is not null then v_others := sluice.sources(v_rivals, v_own_gates, v_own_n, p_claim); end if;
    end if;
    if v_others is not null then
      v_wants := sluice.pick(p_n, v_sources || v_others, cardinality(v_others));
      perform sluice.ring(array(select x.stream from unnest(v_others) x), p_n);
    elsif cardinality(v_sources) = 1 then
      v_wants := array[least(p_n, s.room, s.stream_room)];
    else
      v_wants := sluice.pick(p_n, v_sources, 0);
    end if;

    select array_agg(z.gate), array_agg(z.n) into v_want_gates, v_want_n from (
      select y.gate, sum(x.k)::int as n from unnest(v_sources, v_wants) x(stream, gate, stream_gate, rank, id, room, stream_room, k)
      cross join lateral unnest(sluice.gates_of(x.gate) || x.stream_gate) y(gate) group by y.gate) z;
    select array_agg(coalesce(w.n, 0) order by x.i), array_agg(coalesce(f.n, 0) order by x.i) into v_gate_wants, v_gate_own
    from unnest(v_gates) with ordinality x(gate, i)
    left join unnest(v_want_gates, v_want_n) w(gate, n) on w.gate = x.gate
    left join unnest(v_own_gates, v_own_n) f(gate, n) on f.gate = x.gate;
    v_plain := (select coalesce(sum(x.k), 0) from unnest(v_sources, v_wants) x(stream, gate, stream_gate, rank, id, room, stream_room, k) where x.gate = 0 and x.stream_gate = 0);
    select * into g from sluice.lock_gates(v_gates, v_gate_wants, v_gate_own, v_plain = 0 and v_own_gates is null, p_meters);
    v_wants := sluice.allot(v_wants, v_sources, v_gates, g.slots);
    if p_meters and v_gates <> '{}' then
      v_look := sluice.clock();
      v_full := array(select sluice.full_ms(x.at, v_look) from unnest(g.full_until) with ordinality x(at, i) order by x.i);
    end if;

    return query
    with source as (
      select u.*, case when v_full is not null then (
          select string_agg(',' || y.gate || ',' || y.full_ms, '') from unnest(v_gates, v_full) y(gate, full_ms)
          where y.gate = any (sluice.gates_of(u.gate) || u.stream_gate)) end as passed
      from unnest(v_sources, v_wants) u(stream, gate, stream_gate, rank, id, room, stream_room, k) where k > 0
    ), from_ready as (
      delete from sluice.ready x where x.ctid = any (array(
        select y.tid from source w cross join lateral (
          select z.ctid as tid from sluice.ready z where z.stream = w.stream and (z.rank, z.id) >= (w.rank, w.id)
            and (not v_lowered or sluice.over_lane(z.lanes) is null) order by z.rank, z.id limit w.k for update skip locked) y
        where w.gate = 0))
      returning x.id, x.stream, x.attempt, 0 as gate, x.lanes, x.late
    ), from_gated as (
      delete from sluice.gated x where x.ctid = any (array(
        select y.tid from source w cross join lateral (
          select z.ctid as tid from sluice.gated z where z.stream = w.stream and z.gate = w.gate and (z.rank, z.id) >= (w.rank, w.id)
            and (not v_lowered or sluice.over_lane(z.lanes) is null) order by z.rank, z.id limit w.k for update skip locked) y
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
      select y.gate, y.locked, coalesce(u.n, 0) - y.own - y.absorbed as n, y.full_until
      from unnest(v_gates, g.locked, v_gate_own, g.absorbed, g.full_until) y(gate, locked, own, absorbed, full_until) left join used u on u.gate = y.gate
    ), counted as (
      update sluice.gate t set used = t.used + c.n, full_at = least(c.full_until, sluice.clock()) from (
        select k.tid, change.n, change.full_until from change cross join lateral (select ctid as tid from sluice.gate where id = change.gate limit 1) k
        where change.locked and change.n <> 0) c
      where t.ctid = c.tid
    ), credited as (
      insert into sluice.credit (gate, n) select gate, -n from change where not locked and n < 0
    )
    select c.id, c.stream, (c.attempt + 1)::smallint, t.input, sluice.slots_held(c.lanes, c.gate, c.stream_gate), t.trace,
        case when c.passed is not null or p_meters and c.lanes is not null and (c.lanes[1] >> 60 = 2 or c.lanes[2] >> 60 = 2) then sluice.passed(c.attempt, coalesce(t.due_at, t.created_at), v_look, c.passed, c.lanes, c.late, t.lane_limits)
          when c.id = v_head and c.attempt = 0 then sluice.ms_between(coalesce(t.due_at, t.created_at), v_look)::text end from taken c
    cross join lateral (select k.input, k.trace, k.due_at, k.created_at, k.lane_limits from sluice.task k where k.id = c.id limit 1) t;
    get diagnostics v_claimed = row_count;
  end if;
  if p_tells then
    update sluice.worker w set asleep = v_claimed < p_n where w.id = p_worker and w.asleep <> (v_claimed < p_n);
    -- It has all it can take, and there may be more: the next sleeper looks.
    if v_claimed = p_n and exists (select from sluice.worker where asleep) then perform sluice.ring(p_streams, p_n); end if;
  end if;
end $$;
