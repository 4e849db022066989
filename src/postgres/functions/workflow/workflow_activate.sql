-- Called by every transaction that starts or retries a run, before it does: notes that runs may be live. The advisory
-- lock is held shared until the end of the transaction, so that the row is not deleted while a run that needs it is not
-- committed. It may be requested at any point: a transaction that holds it alone waits for nothing, and releases it at
-- once.
create or replace function sluice.workflow_activate() returns void language plpgsql as $$
begin
  -- guard: active until all starts are committed -> test/postgres/workflow/standing.test.ts: "runs stay active while a start is not committed"
  /* guard:starts */ perform pg_advisory_xact_lock_shared('sluice.workflow_active'::regclass::oid::int, 0); /* end */
  if current_setting('transaction_isolation') <> 'read committed' then
    -- An older snapshot may show a row that is gone: then this fails, as any write would.
    -- guard: active for an old snapshot -> test/postgres/workflow/standing.test.ts: "a start with a snapshot in which runs were active fails if they no longer are"
    perform from sluice.workflow_active limit 1 /* guard:snapshot */ for key share /* end */;
    if found then
      return;
    end if;
  elsif exists (select from sluice.workflow_active) then
    return;
  end if;
  insert into sluice.workflow_active default values;
end $$;
