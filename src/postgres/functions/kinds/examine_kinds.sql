-- Examines up to 32 kinds with blocker 0, in the order of their gates, from p_from to p_to.
-- open: those with room, as sources. last: the last gate examined, null if there are no more.
-- It is one statement, so that one snapshot is read: a row is deleted only if the tasks that came with it are gone.
-- Of several rows of a kind one stays. It is chosen among the rows locked here, because another claim may be deleting
-- the others.
create or replace function sluice.examine_kinds(
  p_stream int, p_from int, p_to int, p_own_gates int[], p_own_n int[],
  out open sluice.source[], out last int)
language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set plan_cache_mode = force_generic_plan set jit = off as $$
begin
  with recursive kind as (
    (select k.gate, 1 as n
      from sluice.waiting_kind k
      where k.stream = p_stream and k.blocker = 0 and k.gate >= p_from and k.gate <= p_to
      order by k.gate
      limit 1)
    union all
    select x.gate, p.n + 1
    from kind p
    cross join lateral (
      select k.gate from sluice.waiting_kind k
      where k.stream = p_stream and k.blocker = 0 and k.gate > p.gate and k.gate <= p_to
      order by k.gate
      limit 1) x
    where p.n < 32
  ), seen as materialized (
    select k.gate, k.n, h.rank, h.turn, h.id,
      case when h.id is not null then sluice.blocker_of(k.gate, p_own_gates, p_own_n, h.id) end as blocker
    from kind k
    left join lateral (
      select g.rank, g.turn, g.id from sluice.gated g
      where g.stream = p_stream and g.gate = k.gate
      order by g.rank, g.turn
      limit 1) h on true
  ), held as materialized (
    select r.tid, s.gate
    from seen s
    cross join lateral (
      select w.ctid as tid from sluice.waiting_kind w
      where w.stream = p_stream and w.blocker = 0 and w.gate = s.gate
      limit 100 for update skip locked) r
    where s.id is null
      or s.blocker is not null
      or exists (
        select from sluice.waiting_kind w
        where w.stream = p_stream and w.blocker = 0 and w.gate = s.gate offset 1)
  ), twin as materialized (
    -- Kinds that already have a row with this blocker. The lock keeps it until this transaction commits.
    select s.gate
    from seen s
    cross join lateral (
      select 1 from sluice.waiting_kind w
      where w.stream = p_stream and w.blocker = s.blocker and w.gate = s.gate
      limit 1 for update skip locked) b
    where s.blocker is not null
  ), note as (
    select h.tid, s.blocker, s.rank, s.turn,
      s.id is null or row_number() over (partition by h.gate) > 1 or s.gate in (select gate from twin) as is_spare
    from held h join seen s on s.gate = h.gate
  ), gone as (
    delete from sluice.waiting_kind where ctid = any (array(select tid from note where is_spare))
  ), blocked as (
    update sluice.waiting_kind k set blocker = n.blocker, fresh = true, rank = n.rank, turn = n.turn
    from note n
    where k.ctid = n.tid and not n.is_spare and n.blocker is not null
  )
  select
    array_agg(
      (p_stream, s.gate, 0, s.rank, s.turn, s.id, sluice.gate_room(s.gate, p_own_gates, p_own_n, s.id), 0)
      ::sluice.source) filter (where s.id is not null and s.blocker is null),
    max(s.gate) filter (where s.n = 32)
  into open, last
  from seen s;
end $$;
