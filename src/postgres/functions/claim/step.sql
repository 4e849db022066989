-- Step: settle these, admit once, claim n more. One round trip, one transaction.
--
-- A claim takes the heads of the sources its worker serves, merged by (rank, turn). A source is
-- ready(stream), or gated(stream, gate) for each gate with room; the stream's own limit applies to
-- both. At most 16 sources per claim; the caller turns p_from so that every stream gets its turn.

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
create or replace function sluice.step(p_worker bigint, p_claim bigint, p_streams int[], p_n int,
  p_ids bigint[] default null, p_claims bigint[] default null, p_results text default null, p_keep boolean default true,
  p_from int default 1, p_tells boolean default false, p_spots sluice.spot[] default null, p_meters boolean default false)
returns table (id bigint, stream int, attempt smallint, input json, holds smallint, trace text, passed text, nonce bigint)
-- A run row in the hand of a user's transaction that does not end must not hold up the barrier: the
-- step fails, its outcomes are sent again.
language plpgsql set lock_timeout = '2s' /* settings: index plans */ as $$
#variable_conflict use_column
declare
  v record; v_note record; g record; s sluice.source; v_sources sluice.source[]; v_others sluice.source[];
  v_settled bigint[]; v_lanes bigint[]; v_lanes_n int[]; v_own_gates int[]; v_own_n int[]; v_joined bigint[]; v_joined_limits int[]; v_take int;
  v_gates int[]; v_rooms int[]; v_wants int[]; v_gate_wants int[]; v_gate_own int[]; v_all sluice.source[]; v_heads bigint[];
  v_passed_lanes int[]; v_ring int[]; v_kept boolean; v_many boolean; v_total int; v_own int; v_locked boolean := false;
  v_refused int; v_head bigint; v_claimed int := 0; v_plain int; v_alive boolean; v_lowered boolean; v_dirty boolean; v_noted boolean; v_flow boolean; f record; v_look timestamptz; v_look_ms int; v_passed text; v_full bigint[];
begin
  perform sluice.barrier_shared();
  -- All that a step asks before it begins: a statement costs more to start than to run. But a scan of a B-tree takes
  -- 27 kB of memory, and past about 100 kB the allocator gives memory back to the system and gets it anew with every
  -- statement, which costs more than a statement. So there are several, each for what only some steps need to know.
  select exists (select from sluice.worker w where w.id = p_worker and w.expires_at > sluice.clock()),
    p_n > 0 and exists (select from sluice.dirty),
    p_n > 0 and /* guard:lowered */ exists (select from sluice.lowered) /* end */,
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

  /* guard:one-pass */ /* end */
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
    elsif cardinality(v_own_gates) = 1 and /* guard:own-gate */ least(s.gate, s.stream_gate) = 0 and /* end */ v_own_gates[1] = s.gate + s.stream_gate
        and least(p_n, s.room, s.stream_room) = v_own_n[1] and not v_kept and (sluice.rivals(v_own_gates, p_streams)).streams is null then
      v_take := v_own_n[1];
    elsif cardinality(v_own_gates) > 1 and v_own_n[1] = all (v_own_n) and least(p_n, s.room, s.stream_room) = v_own_n[1] and not v_kept
        -- guard: slots are re-used for their own totals only -> test/postgres/turns.test.ts: "slots of several totals are re-used only if all of them were freed"
        /* guard:own-totals */ and v_own_gates = array(select x from unnest(sluice.gates_of(s.gate) || s.stream_gate) x where x > 0 order by x) /* end */
        and (sluice.rivals(v_own_gates, p_streams)).streams is null then
      v_take := v_own_n[1];
    end if;
    -- The middle way: one total, whose counter must change, and nobody else to ask. It takes a third of the statements
    -- that several totals need.
    v_total := s.gate + s.stream_gate;
    if v_take is null and s.gate >= 0 and least(s.gate, s.stream_gate) = 0
        and (v_own_gates is null or v_own_gates = array[v_total] and least(p_n, s.room, s.stream_room) <> v_own_n[1])
        and (sluice.full_until(v_total) < v_look - interval '1 second'
          or (sluice.rivals(array[v_total], p_streams)).streams is null) then
      select * into g from sluice.lock_total(v_total);
      v_locked := g.room is not null;
    end if;
    if v_locked then
      v_own := coalesce(v_own_n[1], 0);
      -- guard: one total gives what it has -> test/postgres/limits.test.ts: "under a load of settles it is moved 10 -> 2 -> 10 -> 0 -> 5 and never exceeded"
      v_take := /* guard:total */ greatest(0, least(p_n, /* guard:lowered-total */ g.room /* end */ + v_own)) /* end */;
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
    if p_meters and v_locked then
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
            and (not v_lowered or sluice.over_lane(y.lanes) is null) order by y.rank, y.turn limit v_take for update /* guard:locked */ skip locked /* end */))
        returning x.id, x.stream, x.attempt, x.lanes, x.late
      ), running as (
        insert into sluice.running (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
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
            and (not v_lowered or sluice.over_lane(y.lanes) is null) order by y.rank, y.turn limit v_take for update /* guard:locked */ skip locked /* end */))
        returning x.id, x.stream, x.attempt, x.lanes, x.late
      ), running as (
        insert into sluice.running (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
        select id, p_claim, p_worker, attempt + 1, sluice.clock(), s.gate, s.stream_gate, lanes from taken
      )
      select c.id, c.stream, (c.attempt + 1)::smallint, t.input, sluice.slots_held(c.lanes, s.gate, s.stream_gate), t.trace,
        case when v_passed is not null or p_meters and c.lanes is not null and c.lanes[cardinality(c.lanes)] >> 60 = 3 then sluice.passed(c.attempt, coalesce(t.due_at, t.created_at), v_look, v_passed, c.lanes, c.late, t.lane_limits)
          when c.id = v_head and c.attempt = 0 then sluice.ms_between(coalesce(t.due_at, t.created_at), v_look)::text end, t.nonce from taken c
      cross join lateral (select k.input, k.nonce, k.trace, k.due_at, k.created_at, k.lane_limits from sluice.task k where k.id = c.id limit 1) t;
    end if;
    get diagnostics v_claimed = row_count;
    if v_locked then
      if v_claimed <> v_own + g.absorbed then
        update sluice.gate t set used = t.used + v_claimed - v_own - g.absorbed, full_at = least(g.full_until, sluice.clock())
        where t.id = v_total;
      end if;
      -- guard: slots of one total that a step gives back are noted -> test/postgres/kinds.test.ts: "slots of one total that a step gives back start tasks of types with many groups"
      if /* guard:total-returned */ v_claimed < v_own and v_many /* end */ then perform sluice.note_returned(array[v_total]); end if;
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
            and (not v_lowered or sluice.over_lane(z.lanes) is null) order by z.rank, z.turn limit w.k for update /* guard:locked */ skip locked /* end */) y
        where w.gate = 0))
      returning x.id, x.stream, x.attempt, 0 as gate, x.lanes, x.late
    ), from_gated as (
      delete from sluice.gated x where x.ctid = any (array(
        select y.tid from source w cross join lateral (
          select z.ctid as tid from sluice.gated z where z.stream = w.stream and z.gate = w.gate and (z.rank, z.turn) >= (w.rank, w.turn)
            and (not v_lowered or sluice.over_lane(z.lanes) is null) order by z.rank, z.turn limit w.k for update /* guard:locked */ skip locked /* end */) y
        where w.gate <> 0))
      returning x.id, x.stream, x.attempt, x.gate, x.lanes, x.late
    ), taken as materialized (
      select c.*, w.stream_gate, w.passed from (select * from from_ready union all select * from from_gated) c join source w on w.stream = c.stream and w.gate = c.gate
    ), running as (
      insert into sluice.running (id, claim, worker, attempt, started_at, gate, stream_gate, lanes)
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
      where /* guard:returned */ v_many /* end */ and c.n + c.absorbed < 0
    )
    select c.id, c.stream, (c.attempt + 1)::smallint, t.input, sluice.slots_held(c.lanes, c.gate, c.stream_gate), t.trace,
        case when c.passed is not null or p_meters and c.lanes is not null and c.lanes[cardinality(c.lanes)] >> 60 = 3 then sluice.passed(c.attempt, coalesce(t.due_at, t.created_at), v_look, c.passed, c.lanes, c.late, t.lane_limits)
          when c.id = v_head and c.attempt = 0 then sluice.ms_between(coalesce(t.due_at, t.created_at), v_look)::text end, t.nonce from taken c
    cross join lateral (select k.input, k.nonce, k.trace, k.due_at, k.created_at, k.lane_limits from sluice.task k where k.id = c.id limit 1) t;
    get diagnostics v_claimed = row_count;
  end if;
  -- Tasks that this step let through, or left a slot for, and that others serve. With nothing to claim, also our own.
  v_ring := v_ring || v_passed_lanes;
  if v_ring is not null then v_ring := array(select x from unnest(v_ring) x where p_n <= 0 or x <> all (p_streams)); end if;
  if v_ring <> '{}' then perform sluice.ring_streams(v_ring); end if;
  if p_tells then
    update sluice.worker w set asleep = v_claimed < p_n where w.id = p_worker and w.asleep <> (v_claimed < p_n);
  end if;
  -- It has all that it asked for, and there may be more: the next sleepers look. A claim that is larger than a batch is one
  -- of a worker with a backlog before it, which tells nothing but must not keep the backlog to itself.
  if v_claimed = p_n and (p_tells or p_n > 50) and exists (select from sluice.worker where asleep) then
    perform sluice.ring(p_streams, p_n);
  end if;
end $$;
