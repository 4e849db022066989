-- Streams with many totals. A type whose tasks are spread over thousands of groups has thousands of kinds (a stream and
-- a gate) in `gated`, most of them at a full total. A claim that walked them would cost more with every full group, or
-- miss the one that has room. So claims find open kinds through `waiting_kind`:
--
--   - Every insert into gated appends a row (trigger below), with blocker 0: nobody has looked yet.
--   - A claim looks at rows with blocker 0. It deletes those without tasks and gives those at a full total that total
--     as blocker: the next claims pass over them. Rows of kinds with room stay as they are.
--   - A slot that comes back appends a row to `returned`. The next claim gives rows that this total blocks blocker 0
--     again, as many as there are slots.
--
-- Why no wake-up is lost. A claim may find a total full, and the slot may come back before that claim commits the
-- blocker, so that who handles `returned` sees nothing blocked. Therefore a new blocker is `fresh`, and the next claim
-- that sees the row checks the total once more. It reads a later snapshot than the commit of the blocker: either it
-- sees the slot, or the slot comes back later, and its row in `returned` meets a blocker that is visible.
--
-- All rows here are hints, appended without a lock and taken with SKIP LOCKED, so no claim waits for another and a
-- user's open transaction holds nobody up. The keeper adds what is missing (note_kinds), for instance of transactions
-- that were open when the stream got its flag.

create function sluice.note_waiting() returns trigger language plpgsql as $$
begin
  if exists (select from sluice.stream where many) then
    -- guard: kinds that wait are noted -> test/postgres/kinds.test.ts: "a task of a free group is claimed at once beside thousands of full groups"
    insert into sluice.waiting_kind (stream, gate)
    select distinct a.stream, a.gate from added a join sluice.stream s on s.id = a.stream and s.many;
  end if;
  return null;
end $$;
create trigger gated_noted after insert on sluice.gated referencing new table as added
for each statement execute function sluice.note_waiting();

-- Slots of these totals came back, or their number was raised.
create function sluice.note_returned(p_totals int[]) returns void language plpgsql as $$
begin
  if not exists (select from sluice.stream where many) then return; end if;
  -- guard: slots that come back are noted -> test/postgres/kinds.test.ts: "a slot that comes back to one of thousands of full groups starts its next task: %s"
  insert into sluice.returned (stream, total)
  select gs.stream, gs.gate from sluice.gate_stream gs join sluice.stream s on s.id = gs.stream and s.many
  where gs.gate = any (p_totals);
end $$;

-- The first total of a kind that has no slot for its head, or null. An unlocked read, like gate_room.
create function sluice.blocker_of(p_gate int, p_own_gates int[], p_own_n int[], p_head bigint) returns int
language plpgsql stable as $$
begin
  return (select t from unnest(sluice.gates_of(p_gate)) t
    where sluice.gate_room(t, p_own_gates, p_own_n, p_head) <= 0 order by t limit 1);
end $$;

-- Kinds whose blocker has a slot again get blocker 0: those named in `returned`, no more than there are slots, and
-- those whose blocker is fresh.
create function sluice.wake_kinds(p_stream int, p_own_gates int[], p_own_n int[]) returns void language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  if exists (select from sluice.waiting_kind k where k.stream = p_stream and k.fresh) then
    -- guard: a fresh blocker is checked once more -> test/postgres/kinds.test.ts: "a slot that comes back while a claim finds its total full is not missed"
    update sluice.waiting_kind k set fresh = false,
      blocker = case when sluice.gate_room(k.blocker, p_own_gates, p_own_n) > 0 then 0 else k.blocker end
    where k.ctid = any (array(select f.ctid from sluice.waiting_kind f where f.stream = p_stream and f.fresh
      limit 256 for update skip locked));
  end if;
  if not exists (select from sluice.returned r where r.stream = p_stream) then return; end if;
  with note as (
    select r.ctid as tid, r.total from sluice.returned r where r.stream = p_stream limit 64 for update skip locked
  ), total as materialized (
    select n.total as id, sluice.gate_room(n.total, p_own_gates, p_own_n) as room
    from (select distinct total from note) n
  ), woken as (
    update sluice.waiting_kind k set blocker = 0, fresh = false where k.ctid = any (array(
      select w.tid from total t cross join lateral (select b.ctid as tid from sluice.waiting_kind b
        where b.stream = p_stream and b.blocker = t.id limit greatest(0, least(t.room, 64)) for update skip locked) w))
    returning 1
  )
  -- While a total has room, and more that it blocks than were woken now, its note stays.
  delete from sluice.returned where ctid = any (array(
    select n.tid from note n join total t on t.id = n.total
    where t.room <= 0 or (select count(*) from (select from sluice.waiting_kind b
      where b.stream = p_stream and b.blocker = t.id limit least(t.room, 64) + 1) x) <= least(t.room, 64)));
end $$;

-- Looks at up to 32 kinds with blocker 0, in the order of their gates, from p_from to p_to. Returns those with room as
-- sources, and the last gate it looked at: null if there are no more. One statement, so that all is read by one
-- snapshot: a row goes only if the tasks that came with it are gone.
create function sluice.look_at_kinds(p_stream int, p_from int, p_to int, p_own_gates int[], p_own_n int[],
  out open sluice.source[], out last int)
language plpgsql set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan
set jit = off as $$
begin
  with recursive kind as (
    (select k.gate, 1 as n from sluice.waiting_kind k
      where k.stream = p_stream and k.blocker = 0 and k.gate >= p_from and k.gate <= p_to order by k.gate limit 1)
    union all
    select x.gate, p.n + 1 from kind p cross join lateral (
      select k.gate from sluice.waiting_kind k
      where k.stream = p_stream and k.blocker = 0 and k.gate > p.gate and k.gate <= p_to order by k.gate limit 1) x
    where p.n < 32
  ), seen as materialized (
    select k.gate, k.n, h.rank, h.turn, h.id,
      case when h.id is not null then sluice.blocker_of(k.gate, p_own_gates, p_own_n, h.id) end as blocker
    from kind k left join lateral (
      select g.rank, g.turn, g.id from sluice.gated g where g.stream = p_stream and g.gate = k.gate
      order by g.rank, g.turn limit 1) h on true
  ), note as materialized (
    select r.tid, s.id is null or r.n > 1 as is_spare, s.blocker from seen s cross join lateral (
      select w.ctid as tid, row_number() over () as n from sluice.waiting_kind w
      where w.stream = p_stream and w.blocker = 0 and w.gate = s.gate limit 100) r
    where s.id is null or s.blocker is not null or r.n > 1
  ), held as materialized (
    select w.ctid as tid from sluice.waiting_kind w where w.ctid = any (array(select tid from note))
    for update skip locked
  ), gone as (
    delete from sluice.waiting_kind where ctid = any (array(
      select h.tid from held h join note n on n.tid = h.tid where n.is_spare))
  ), blocked as (
    update sluice.waiting_kind k set blocker = n.blocker, fresh = true from held h join note n on n.tid = h.tid
    where k.ctid = h.tid and not n.is_spare
  )
  select array_agg((p_stream, s.gate, 0, s.rank, s.turn, s.id, sluice.gate_room(s.gate, p_own_gates, p_own_n, s.id), 0)
      ::sluice.source) filter (where s.id is not null and s.blocker is null),
    max(s.gate) filter (where s.n = 32)
  into open, last from seen s;
end $$;

-- The kinds of a stream with many totals that have room, from one that the random token decides: most of those there
-- are, or as many as a claim can use. Bounded by 16 looks; each kind that is found full is passed over from then on.
create function sluice.open_kinds(p_stream int, p_own_gates int[], p_own_n int[], p_token bigint)
returns setof sluice.source language plpgsql as $$
declare v_start int := sluice.turn_of(p_token); v_from int := v_start; v_to int := 2147483647; v_found int := 0; v record;
begin
  perform sluice.wake_kinds(p_stream, p_own_gates, p_own_n);
  for v_look in 1..16 loop
    select * into v from sluice.look_at_kinds(p_stream, v_from, v_to, p_own_gates, p_own_n);
    return query select * from unnest(v.open);
    v_found := v_found + coalesce(cardinality(v.open), 0);
    exit when v_found >= 16;
    if v.last is not null and v.last < v_to then
      v_from := v.last + 1;
    else
      exit when v_to < 2147483647;
      v_from := -2147483648; v_to := v_start - 1;
    end if;
  end loop;
end $$;

-- Gives kinds that have tasks but no row one: up to 256 each way of every such stream, from one that the token decides.
create function sluice.note_kinds(p_token bigint) returns void language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare v_start int := sluice.turn_of(p_token);
begin
  -- guard: kinds without a row get one -> test/postgres/kinds.test.ts: "tasks that waited before their stream had many groups are claimed"
  insert into sluice.waiting_kind (stream, gate)
  select s.id, k.gate from (select id from sluice.stream where many order by id limit 64) s
  cross join (values (v_start, 2147483647), (-2147483648, v_start - 1)) part(low, high)
  cross join lateral (
    with recursive kind as (
      (select g.gate, 1 as n from sluice.gated g
        where g.stream = s.id and g.gate >= part.low and g.gate <= part.high order by g.gate limit 1)
      union all
      select x.gate, p.n + 1 from kind p cross join lateral (
        select g.gate from sluice.gated g
        where g.stream = s.id and g.gate > p.gate and g.gate <= part.high order by g.gate limit 1) x
      where p.n < 256
    ) select gate from kind) k
  where not exists (select from sluice.waiting_kind w where w.stream = s.id and w.gate = k.gate and w.blocker = 0)
    and not exists (select from sluice.waiting_kind w where w.stream = s.id and w.gate = k.gate
      and w.blocker = any (sluice.gates_of(k.gate)));
end $$;
