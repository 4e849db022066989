-- Prevents these limits from being forgotten until this transaction ends: forget_limits cannot see a task that is not
-- committed. Groups share 32 advisory locks, so that a transaction that uses thousands of groups takes few locks. They
-- are taken shared here and only tried by forget_limits, which waits for nothing while it holds one. So an open
-- transaction makes nothing wait, and an enqueue waits a few milliseconds at most. The caller checks afterwards, in a
-- later statement, that the limits still exist.
create or replace function sluice.hold_limits(p_limits int[]) returns void language plpgsql as $$
begin
  -- guard: a group in use is not forgotten -> test/postgres/forget.test.ts: "a group is not forgotten while an open transaction has enqueued a task of it"
  perform pg_advisory_xact_lock_shared('sluice.limits'::regclass::oid::int, x.bucket)
  from (
    select distinct sluice.limit_bucket(l.id) as bucket from sluice.limits l
    where l.id = any (p_limits) and /* guard:transient */ l.transient /* end */
    order by 1) x;
end $$;
