-- Streams with many totals. A type whose tasks are spread over thousands of groups has thousands of kinds (a stream and
-- a gate) in `gated`, most of them at a full total. A claim that walked them would cost more with every full group, or
-- miss the one that has room. So claims find open kinds through `waiting_kind`:
--
--   - Every insert into gated appends a row (trigger below), with blocker 0: nobody has looked yet.
--   - A claim looks at rows with blocker 0. It deletes those without tasks and gives those at a full total that total
--     as blocker: the next claims pass over them. Rows of kinds with room stay as they are.
--   - A slot that comes back appends a row to `returned`. The next claim gives rows that this total blocks blocker 0
--     again, the first by (rank, turn), a few more than there are slots. The note stays while the total has room and
--     blocks anything.
--
-- Why no wake-up is lost. A claim may find a total full, and the slot may come back before that claim commits the
-- blocker, so that the claim that handles `returned` sees nothing blocked. Therefore a new blocker is `fresh`, and the
-- next claim that sees the row checks the total once more. It reads a later snapshot than the commit of the blocker:
-- either it sees the slot, or the slot comes back later, and its row in `returned` meets a blocker that is visible. A row
-- that another claim has locked stays blocked, so the note for it stays too.
--
-- All rows here are hints, appended without a lock and taken with SKIP LOCKED, so no claim waits for another and a
-- user's open transaction holds nobody up. Notes are written for the streams that are known to use a total at that time.
-- The keeper mends what that misses (note_kinds): kinds without a row, and blockers that have room.

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

-- Slots of a total, also those that are kept for a task: the task may be among the kinds that are woken.
create function sluice.free_slots(p_total int, p_own_gates int[], p_own_n int[]) returns int language plpgsql stable as $$
begin
  return sluice.gate_room(p_total, p_own_gates, p_own_n, (select g.kept_for from sluice.gate g where g.id = p_total));
end $$;

-- The first total of a kind that has no slot for its head, or null. An unlocked read, like gate_room.
create function sluice.blocker_of(p_gate int, p_own_gates int[], p_own_n int[], p_head bigint) returns int
language plpgsql stable as $$
begin
  return (select t from unnest(sluice.gates_of(p_gate)) t
    where sluice.gate_room(t, p_own_gates, p_own_n, p_head) <= 0 order by t limit 1);
end $$;

-- Kinds whose blocker has a slot again get blocker 0: those that the totals in `returned` block, or those of which the
-- step has just freed slots itself, and those whose blocker is fresh. Returns whether a note is left.
create function sluice.wake_kinds(p_stream int, p_own_gates int[], p_own_n int[]) returns boolean language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
declare v_left boolean;
begin
  if exists (select from sluice.waiting_kind k where k.stream = p_stream and k.fresh) then
    -- guard: a fresh blocker is checked once more -> test/postgres/kinds.test.ts: "a slot that comes back while a claim finds its total full is not missed"
    update sluice.waiting_kind k set fresh = false,
      blocker = case when sluice.free_slots(k.blocker, p_own_gates, p_own_n) > 0 then 0 else k.blocker end
    where k.ctid = any (array(select f.ctid from sluice.waiting_kind f where f.stream = p_stream and f.fresh
      limit 256 for update skip locked));
  end if;
  if p_own_gates is null and not exists (select from sluice.returned r where r.stream = p_stream) then return false; end if;
  with note as (
    select r.ctid as tid, r.total from sluice.returned r where r.stream = p_stream limit 64 for update skip locked
  ), total as materialized (
    select n.total as id, sluice.free_slots(n.total, p_own_gates, p_own_n) as room
    from (select total from note union select unnest(p_own_gates)) n
  ), woken as (
    -- A few more than there are slots: some may wait for another total too.
    update sluice.waiting_kind k set blocker = 0, fresh = false where k.ctid = any (array(
      select w.tid from total t cross join lateral (select b.ctid as tid from sluice.waiting_kind b
        where b.stream = p_stream and b.blocker = t.id order by b.rank, b.turn
        limit case when t.room > 0 then least(t.room, 48) + 16 else 0 end for update skip locked) w))
    returning 1
  ), gone as (
    -- guard: a note stays while its total blocks anything -> test/postgres/kinds.test.ts: "a note of a slot is not used up while what it wakes is in another claim's hand"
    delete from sluice.returned where ctid = any (array(
      select n.tid from note n join total t on t.id = n.total where t.room <= 0
        or not exists (select from sluice.waiting_kind b where b.stream = p_stream and b.blocker = t.id)))
    returning 1
  )
  select (select count(*) from note) > (select count(*) from gone) into v_left;
  return v_left;
end $$;

-- Looks at up to 32 kinds with blocker 0, in the order of their gates, from p_from to p_to. Returns those with room as
-- sources, and the last gate it looked at: null if there are no more. One statement, so that all is read by one
-- snapshot: a row goes only if the tasks that came with it are gone. Of several rows of a kind one stays; which, is
-- decided among those that are locked here, because others may be deleted by another claim.
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
  ), held as materialized (
    select r.tid, s.gate from seen s cross join lateral (
      select w.ctid as tid from sluice.waiting_kind w
      where w.stream = p_stream and w.blocker = 0 and w.gate = s.gate limit 100 for update skip locked) r
    where s.id is null or s.blocker is not null or exists (select from sluice.waiting_kind w
      where w.stream = p_stream and w.blocker = 0 and w.gate = s.gate offset 1)
  ), twin as materialized (
    -- A row of the kind that this total blocks already. Locked, it stays so until we commit.
    select s.gate from seen s cross join lateral (
      select 1 from sluice.waiting_kind w where w.stream = p_stream and w.blocker = s.blocker and w.gate = s.gate
      limit 1 for update skip locked) b where s.blocker is not null
  ), note as (
    select h.tid, s.blocker, s.rank, s.turn, s.id is null or row_number() over (partition by h.gate) > 1
      or s.gate in (select gate from twin) as is_spare from held h join seen s on s.gate = h.gate
  ), gone as (
    delete from sluice.waiting_kind where ctid = any (array(select tid from note where is_spare))
  ), blocked as (
    update sluice.waiting_kind k set blocker = n.blocker, fresh = true, rank = n.rank, turn = n.turn from note n
    where k.ctid = n.tid and not n.is_spare and n.blocker is not null
  )
  select array_agg((p_stream, s.gate, 0, s.rank, s.turn, s.id, sluice.gate_room(s.gate, p_own_gates, p_own_n, s.id), 0)
      ::sluice.source) filter (where s.id is not null and s.blocker is null),
    max(s.gate) filter (where s.n = 32)
  into open, last from seen s;
end $$;

-- The kinds of a stream with many totals that have room, from one that the random token decides: most of those there
-- are, or as many as a claim can use. Bounded by 24 looks; each kind that is found full is passed over from then on.
create function sluice.open_kinds(p_stream int, p_own_gates int[], p_own_n int[], p_token bigint)
returns setof sluice.source language plpgsql as $$
declare
  v_start int := sluice.turn_of(p_token); v_from int := v_start; v_to int := 2147483647; v_found int := 0; v record;
  v_left boolean := sluice.wake_kinds(p_stream, p_own_gates, p_own_n);
begin
  for v_look in 1..24 loop
    select * into v from sluice.look_at_kinds(p_stream, v_from, v_to, p_own_gates, p_own_n);
    return query select * from unnest(v.open);
    v_found := v_found + coalesce(cardinality(v.open), 0);
    exit when v_found >= 16;
    if v.last is not null and v.last < v_to then
      v_from := v.last + 1;
    elsif v_to = 2147483647 then
      v_from := -2147483648; v_to := v_start - 1;
    else
      -- All were looked at. What was woken waits for other totals: the next of those that the slot could be for.
      exit when v_found > 0 or not v_left;
      v_left := sluice.wake_kinds(p_stream, p_own_gates, p_own_n);
      v_from := v_start; v_to := 2147483647;
    end if;
  end loop;
end $$;

-- Mends what notes have missed, a piece with every call, from a place that the token decides: kinds that have tasks but
-- no row get one, blockers with room are lifted, and notes go that nobody will look at.
create function sluice.note_kinds(p_token bigint) returns void language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare v_start int := sluice.turn_of(p_token);
begin
  -- guard: kinds without a row get one -> test/postgres/kinds.test.ts: "tasks that waited before their stream had many groups are claimed"
  insert into sluice.waiting_kind (stream, gate)
  select s.id, k.gate from (select id from sluice.stream where many order by random() limit 16) s
  cross join (values (v_start, 2147483647), (-2147483648, v_start - 1)) part(low, high)
  cross join lateral (
    with recursive kind as (
      (select g.gate, 1 as n from sluice.gated g
        where g.stream = s.id and g.gate >= part.low and g.gate <= part.high order by g.gate limit 1)
      union all
      select x.gate, p.n + 1 from kind p cross join lateral (
        select g.gate from sluice.gated g
        where g.stream = s.id and g.gate > p.gate and g.gate <= part.high order by g.gate limit 1) x
      where p.n < 128
    ) select gate from kind) k
  where not exists (select from sluice.waiting_kind w where w.stream = s.id and w.gate = k.gate and w.blocker = 0)
    and not exists (select from sluice.waiting_kind w where w.stream = s.id and w.gate = k.gate
      and w.blocker = any (sluice.gates_of(k.gate)));
  -- guard: a blocker with room is lifted -> test/postgres/kinds.test.ts: "a slot whose return was noted for another stream alone is found"
  update sluice.waiting_kind k set blocker = 0, fresh = false where k.ctid = any (array(
    select b.tid from (select id from sluice.stream where many order by random() limit 16) s
    cross join (values (v_start, 2147483647), (1, v_start - 1)) part(low, high)
    cross join lateral (select w.ctid as tid, w.blocker from sluice.waiting_kind w
      where w.stream = s.id and w.blocker >= greatest(1, part.low) and w.blocker <= part.high
      order by w.blocker limit 128 for update skip locked) b
    where sluice.free_slots(b.blocker, null, null) > 0));
  delete from sluice.returned where ctid = any (array(
    select r.tid from (
      select x.ctid as tid, x.stream, row_number() over (partition by x.stream, x.total) as n
      from (select ctid, stream, total from sluice.returned order by stream, total limit 2000) x) r
    where r.n > 1 or not exists (select from sluice.gated g where g.stream = r.stream)));
end $$;
