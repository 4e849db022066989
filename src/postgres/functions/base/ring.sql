-- Wakes sleeping workers that serve one of these streams, one and one more per 50 tasks, with the share of each. NOTIFY
-- takes a global lock at commit and signals every backend of the database that listens, so it is sent only if a worker
-- on call sleeps. A notification is only a hint: workers also poll. PostgreSQL cannot prepare a transaction that has
-- notified, so PREPARE TRANSACTION needs sluice.ring = off.
create or replace function sluice.ring(p_streams int[], p_tasks int) returns void language plpgsql as $$
begin
  -- In two parts, because `migrate` would quote the schema name inside the literal.
  if current_setting('sluice' || '.ring', true) = 'off' then return; end if;
  perform pg_notify('sluice', 'wake:' || w.id || ':' || ceil(p_tasks::numeric / count(*) over ()))
  from (
    select id from sluice.worker
    -- guard: workers in reserve are not rung -> test/postgres/on-call.test.ts: "a ring reaches a worker that is on call, however many workers are in reserve"
    where asleep and /* guard:reserve */ on_call_since is not null /* end */
      and capacity_available > 0
      and not draining
      and expires_at > sluice.clock()
      and streams && p_streams
    order by random()
    limit 1 + p_tasks / 50) w;
end $$;
