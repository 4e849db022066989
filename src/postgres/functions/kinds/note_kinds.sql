-- Repairs what notes have missed, a part of it with every call, from a place that the token decides. Kinds that have
-- tasks but no row get one, blockers with room are lifted, and notes that no claim will read are deleted.
create or replace function sluice.note_kinds(p_token bigint) returns void language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set jit = off as $$
declare
  v_start int := sluice.random_gate(p_token);
begin
  -- guard: kinds without a row get one -> test/postgres/kinds.test.ts: "tasks that waited before their stream had many groups are claimed"
  insert into sluice.waiting_kind (stream, gate)
  select s.id, k.gate
  from (select id from sluice.stream where /* guard:many */ many /* end */ order by random() limit 16) s
  cross join (values (v_start, sluice.int_max()), (sluice.int_min(), v_start - 1)) part(low, high)
  cross join lateral (
    with recursive kind as (
      (select g.gate, 1 as n
        from sluice.gated g
        where g.stream = s.id and g.gate >= part.low and g.gate <= part.high
        order by g.gate
        limit 1)
      union all
      select x.gate, p.n + 1
      from kind p
      cross join lateral (
        select g.gate from sluice.gated g
        where g.stream = s.id and g.gate > p.gate and g.gate <= part.high
        order by g.gate
        limit 1) x
      where p.n < 128
    )
    select gate from kind) k
  where not exists (select from sluice.waiting_kind w where w.stream = s.id and w.gate = k.gate and w.blocker = 0)
    and not exists (
      select from sluice.waiting_kind w
      where w.stream = s.id and w.gate = k.gate and w.blocker = any (sluice.gates_of(k.gate)));
  -- guard: a blocker with room is lifted -> test/postgres/kinds.test.ts: "a returned slot that was noted only for another stream is found"
  update sluice.waiting_kind k set blocker = 0, fresh = false
  where k.ctid = any (array(
    select b.tid
    from (select id from sluice.stream where /* guard:many */ many /* end */ order by random() limit 16) s
    cross join (values (v_start, sluice.int_max()), (1, v_start - 1)) part(low, high)
    cross join lateral (
      select w.ctid as tid, w.blocker from sluice.waiting_kind w
      where w.stream = s.id and w.blocker >= greatest(1, part.low) and w.blocker <= part.high
      order by w.blocker
      limit 128 for update skip locked) b
    where /* guard:room */ sluice.free_slots(b.blocker, null, null) > 0 /* end */));
  delete from sluice.returned where ctid = any (array(
    select r.tid
    from (
      select x.ctid as tid, x.stream, row_number() over (partition by x.stream, x.total) as n
      from (select ctid, stream, total from sluice.returned order by stream, total limit 2000) x) r
    where r.n > 1 or not exists (select from sluice.gated g where g.stream = r.stream)));
end $$;
