-- Forgets groups: transient limits that no task refers to, live or in history, no type, no schedule and no operator,
-- and that no client has declared for p_unused_ms. One call examines the next p_max limits after p_after.
-- after: where to go on, 0 after the last limit. forgotten: how many.
-- A client that uses a group declares it again every 15 minutes, so it does not meet a group that was forgotten. If it
-- does, its enqueue is refused with unknown_limit and it declares the group again.
--
-- Locks, in this order: the barrier, shared, so that no number is being changed; the advisory locks of the groups,
-- tried (see hold_limits); rows of limits and of gate, skipped when locked. It waits for nothing once it has the
-- barrier. The advisory lock proves that no open transaction has enqueued a task of the group; tasks committed before
-- are visible to the statement that comes after the lock.
create or replace function sluice.forget_limits(
  p_after int, p_max int, p_unused_ms bigint, out after int, out forgotten int)
language plpgsql /* settings: index plans */ as $$
declare
  v_now timestamptz := sluice.clock();
  v_ids int[];
  v_unused int[];
  v_old int[];
begin
  forgotten := 0;
  perform sluice.barrier_shared();
  v_ids := array(select l.id from sluice.limits l where l.id > p_after order by l.id limit p_max);
  after := case when cardinality(v_ids) = p_max then v_ids[p_max] else 0 end;
  v_unused := sluice.unused_limits(v_ids);
  update sluice.limits set unused_since = case when id = any (v_unused) then v_now end
  where id = any (array(
    select l.id from sluice.limits l
    where l.id = any (v_ids) and l.transient and (l.unused_since is null) = (l.id = any (v_unused))
    order by l.id for update skip locked));
  v_old := array(
    select l.id from sluice.limits l
    where l.id = any (v_unused) and l.unused_since < v_now - p_unused_ms * interval '1 millisecond');
  if v_old = '{}' then return; end if;
  v_old := array(
    select o from unnest(v_old) o
    where sluice.limit_bucket(o) in (
      select b.bucket
      from (select distinct sluice.limit_bucket(x) as bucket from unnest(v_old) x) b
      where pg_try_advisory_xact_lock('sluice.limits'::regclass::oid::int, b.bucket)));
  -- guard: a group is looked at again under its lock -> test/postgres/forget.test.ts: "a group whose task is committed during the keeper's check is not forgotten"
  /* guard:again */ v_old := sluice.unused_limits(v_old); /* end */
  v_old := array(
    select l.id from sluice.limits l
    where l.id = any (v_old) and l.unused_since is not null
    order by l.id for update skip locked);
  v_old := array(select g.id from sluice.gate g where g.id = any (v_old) order by g.id for update skip locked);
  if v_old = '{}' then return; end if;
  delete from sluice.limits where id = any (v_old);
  delete from sluice.gate where id = any (v_old);
  delete from sluice.credit where gate = any (v_old);
  delete from sluice.gate_stream where gate = any (v_old);
  perform sluice.drop_sets(v_old);
  forgotten := cardinality(v_old);
end $$;
