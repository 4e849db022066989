-- Notes that runs are no longer active, once no run is live. One transaction at a time, and about once a minute in all,
-- because the search may take long. It begins with the newest run: a live one is most often among those. Takes advisory
-- locks only if they are free.
create or replace function sluice.workflow_deactivate() returns void
language plpgsql /* settings: index plans */ as $$
declare v_now timestamptz := sluice.clock(); v_live boolean;
begin
  if current_setting('transaction_isolation') <> 'read committed'
    or not exists (select from sluice.workflow_active)
    or not pg_try_advisory_xact_lock('sluice.workflow_active'::regclass::oid::int, 1) then
    return;
  end if;
  if exists (select from sluice.workflow_looked where at between v_now - interval '50 seconds' and v_now) then
    return;
  end if;
  v_live := exists (select from sluice.workflow_run where finished_at is null order by id desc limit 1);
  update sluice.workflow_looked set at = v_now;
  if not found then
    insert into sluice.workflow_looked values (v_now);
  end if;
  if v_live or not pg_try_advisory_xact_lock('sluice.workflow_active'::regclass::oid::int, 0) then
    return;
  end if;
  -- With a later snapshot than the lock: every run that was started before it is seen.
  -- guard: a live run keeps runs active -> test/postgres/workflow/standing.test.ts: "runs stay active for a run that is committed during the keeper's check"
  delete from sluice.workflow_active
  /* guard:live */ where not exists (select from sluice.workflow_run where finished_at is null) /* end */;
end $$;
