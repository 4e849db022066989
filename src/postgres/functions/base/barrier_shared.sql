-- The barrier makes "after limits.set has returned, nothing is admitted above the new number" true. Every transaction
-- that admits or claims holds the barrier shared until it commits; a change of a number holds it exclusively.
-- It is taken before any row lock, so it is first in the lock order. It is an advisory lock and not a table lock:
-- a backup reads every table for hours and must not stop either side.
-- Functions that run inside a user's transaction never take it: they take no lane lock, and leave notes.
create or replace function sluice.barrier_shared() returns void language plpgsql as $$
begin
  -- guard: isolation -> test/postgres/attacks.test.ts: "attack 3: another isolation level is refused"
  if current_setting('transaction_isolation') /* guard:isolation */ <> 'read committed' /* end */ then
    perform sluice.refuse('isolation_level',
      'Sluice needs READ COMMITTED: under ' || current_setting('transaction_isolation')
      || ' a freed slot could be lost');
  end if;
  perform /* guard:barrier */ pg_advisory_xact_lock_shared /* end */('sluice.limits'::regclass::oid::int, 0);
end $$;
